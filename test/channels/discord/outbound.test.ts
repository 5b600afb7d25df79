import { describe, expect, it } from 'vitest';
import { plainText } from '#contracts/formatted-text.ts';
import { accountId, channelId, conversationId, messageId, partKey, threadId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { capabilities } from '../../../channels/discord/capabilities.ts';
import { failureOf, isQuoteRefused, readRefusal } from '../../../channels/discord/failures.ts';
import { interactionOf, toCall } from '../../../channels/discord/outbound.ts';
import { chunkFormatted } from '../../../src/replies/chunk.ts';
import { formatMarkdown } from '../../../src/replies/markdown.ts';

const route: ReplyRoute = {
  channel: channelId('discord'),
  account: accountId('1100'),
  conversation: conversationId('1200'),
};
const callOf = (content: OutboundContent, place: Partial<ReplyRoute> = {}, sizeBytes = 0) =>
  toCall({ key: partKey('run:1:t'), route: { ...route, ...place }, content }, { sizes: [sizeBytes] });
const text = (value: string): OutboundContent => ({ kind: 'text', text: plainText(value) });
const media = { kind: 'media', path: '/tmp/a.png', mimeType: 'image/png', name: 'a.png' } as const;
const edit = { kind: 'edit', messageId: messageId('7'), text: plainText('new') } as const;

describe('a send', () => {
  it('sends without pings and previews, with a nonce for deduplication', () => {
    const call = callOf(text('hi @everyone'));
    expect(call).toMatchObject({
      method: 'send',
      channel: '1200',
      body: {
        content: 'hi \\@everyone',
        allowed_mentions: { parse: [], replied_user: false },
        flags: 4,
        enforce_nonce: true,
      },
    });
  });

  it('derives one short nonce per part, the same in every process', () => {
    const nonceOfKey = (key: string) => {
      const call = toCall({ key: partKey(key), route, content: text('x') });
      return call.method === 'send' ? call.body.nonce : '';
    };
    expect(nonceOfKey('run-1:1:discord/1/2')).toBe(nonceOfKey('run-1:1:discord/1/2'));
    expect(nonceOfKey('run-1:1:discord/1/2')).not.toBe(nonceOfKey('run-1:2:discord/1/2'));
    expect(nonceOfKey(`${'long-'.repeat(100)}1`)).toMatch(/^[\w-]{20,25}$/);
  });

  it('sends to the thread, with a quote that may be missing', () => {
    const call = callOf(text('hi'), { thread: threadId('1300'), replyTo: messageId('1400') });
    expect(call).toMatchObject({
      channel: '1300',
      body: { message_reference: { message_id: '1400', fail_if_not_exists: false } },
    });
  });

  it('never quotes an interaction, which is not a message', () => {
    const replyTo = messageId('interaction-1500');
    const outbound = { key: partKey('k'), route: { ...route, replyTo }, content: text('done') };
    const call = toCall(outbound);
    expect(call.method === 'send' && call.body).not.toHaveProperty('message_reference');
    expect(interactionOf(outbound)).toBe('1500');
    expect(interactionOf({ ...outbound, route })).toBeUndefined();
  });

  it('names the file, and refuses one that is larger than Discord accepts', () => {
    const named = { ...media, name: 'a/"b".png', caption: plainText('look') };
    expect(callOf(named, {}, 10)).toMatchObject({
      body: { content: 'look', attachments: [{ id: '0', filename: 'a__b_.png' }] },
      files: [{ path: '/tmp/a.png', name: 'a__b_.png', mimeType: 'image/png', sizeBytes: 10 }],
    });
    expect(callOf(media, {}, 11 * 1024 * 1024)).toMatchObject({ method: 'none' });
  });

  it("refuses a text that is too long and ids that are not Discord's", () => {
    expect(callOf(text('x'.repeat(2001))).method).toBe('none');
    expect(callOf(text('*'.repeat(1001))).method).toBe('none');
    expect(callOf(text('x'), { conversation: conversationId('../1') }).method).toBe('none');
    expect(callOf({ kind: 'delete', messageId: messageId('a/b') }).method).toBe('none');
  });

  it('fits every chunk of an answer full of markup into a message', () => {
    const answer = formatMarkdown(
      `${'**bold_text** with `code` and *stars* \\* \\_ \\[ [a](https://a.example/b) \n'.repeat(80)}`,
    );
    const chunks = chunkFormatted(answer, capabilities.text);
    expect(chunks.length).toBeGreaterThan(2);
    for (const chunk of chunks) expect(callOf({ kind: 'text', text: chunk }).method).toBe('send');
  });
});

describe('changes', () => {
  it('edits a text without pings', () => {
    expect(callOf({ ...edit, text: plainText('<@12345678901234567>') })).toEqual({
      method: 'edit',
      channel: '1200',
      message: '7',
      body: {
        content: '\\<@12345678901234567>',
        allowed_mentions: { parse: [], replied_user: false },
        flags: 4,
      },
    });
  });

  it.each([
    ['👍', '%F0%9F%91%8D'],
    ['⚠', '%E2%9A%A0%EF%B8%8F'],
    ['⚠️', '%E2%9A%A0%EF%B8%8F'],
    ['✅', '%E2%9C%85'],
    ['party:123', 'party%3A123'],
  ])('encodes the reaction %s as Discord expects', (emoji, inPath) => {
    expect(callOf({ kind: 'reaction', messageId: messageId('7'), emoji })).toMatchObject({ emoji: inPath });
  });

  it('takes the bot’s own reaction back', () => {
    const content = { kind: 'reaction', messageId: messageId('7'), emoji: '👍', isRemoved: true } as const;
    expect(callOf(content)).toMatchObject({ method: 'unreact', emoji: '%F0%9F%91%8D' });
  });
});

describe('failed calls', () => {
  const refusal = (status: number, code: number, message = 'no') =>
    Object.assign(new Error(message), { status, code });
  const outcome = (error: unknown, content: OutboundContent = text('x'), over = {}) =>
    failureOf(error, { content, isThread: false, isAborted: false, ...over });
  const network = (code: string) => Object.assign(new Error('fetch failed'), { code });

  it.each([
    [
      'a rate limit',
      Object.assign(new Error(), { retryAfter: 7000, timeToReset: 7000 }),
      { kind: 'retry', afterMs: 7000 },
    ],
    ['a proxy’s ban', refusal(429, Number.NaN), { kind: 'retry' }],
    ['a page of a proxy', Object.assign(new Error('x'), { status: 403 }), { kind: 'retry', afterMs: 60_000 }],
    [
      'a proxy’s size limit',
      Object.assign(new Error('x'), { status: 413 }),
      { kind: 'failed', failure: { kind: 'rejected' } },
    ],
    ['a route that is away', refusal(404, 0), { kind: 'retry', afterMs: 60_000 }],
    ['a block at the edge', refusal(403, 40333), { kind: 'retry', afterMs: 60_000 }],
    ['an invalid token', refusal(401, 0), { kind: 'failed', failure: { kind: 'unauthorised' } }],
    ['a channel that is gone', refusal(404, 10003), { kind: 'failed', failure: { kind: 'unreachable' } }],
    ['a channel out of sight', refusal(403, 50001), { kind: 'failed', failure: { kind: 'unreachable' } }],
    ['a person who blocks', refusal(403, 50007), { kind: 'failed', failure: { kind: 'unreachable' } }],
    ['a person out of reach', refusal(403, 50278), { kind: 'failed', failure: { kind: 'unreachable' } }],
    ['no right to speak', refusal(403, 50013), { kind: 'failed', failure: { kind: 'unreachable' } }],
    ['a body Discord does not take', refusal(400, 50035), { kind: 'failed', failure: { kind: 'rejected' } }],
    ['an outage inside', refusal(502, 0), { kind: 'unknown' }],
    ['a cut connection', network('UND_ERR_SOCKET'), { kind: 'unknown' }],
    ['no connection', network('ECONNREFUSED'), { kind: 'retry', isOutage: true }],
  ])('decides what becomes of a call after %s', (_, error, expected) =>
    expect(outcome(error)).toMatchObject(expected),
  );

  it('reports a thread that is gone, so that the answer goes to the channel', () => {
    for (const code of [10003, 50083, 160005])
      expect(outcome(refusal(404, code), text('x'), { isThread: true })).toMatchObject({
        failure: { kind: 'thread-gone' },
      });
    // The rejected edit is sent as a message instead, which reopens an archived thread.
    expect(outcome(refusal(400, 50083), edit, { isThread: true })).toMatchObject({
      failure: { kind: 'rejected' },
    });
  });

  it('does not blame the channel for a permission that is missing in a thread', () => {
    for (const code of [50001, 50013])
      expect(outcome(refusal(403, code), text('x'), { isThread: true })).toMatchObject({
        failure: { kind: 'rejected' },
      });
  });

  it('reports refused markup, so that the text is sent again without it', () => {
    const bold = { text: 'x', spans: [{ kind: 'bold', start: 0, length: 1 }] } as const;
    expect(outcome(refusal(400, 50035), { kind: 'text', text: bold })).toMatchObject({
      failure: { kind: 'markup' },
    });
  });

  it('repeats an interrupted call whose repetition changes nothing', () => {
    for (const content of [edit, { kind: 'delete', messageId: messageId('7') } as const])
      expect(outcome(network('UND_ERR_SOCKET'), content).kind).toBe('retry');
  });

  it('counts a deletion of a message that is gone as sent', () => {
    expect(outcome(refusal(404, 10008), { kind: 'delete', messageId: messageId('7') }).kind).toBe('sent');
    expect(outcome(refusal(404, 10008), edit)).toMatchObject({ failure: { kind: 'rejected' } });
  });

  it('recognizes a refusal that concerns only the quoted message', () => {
    expect(isQuoteRefused(refusal(400, 160002))).toBe(true);
    expect(isQuoteRefused(refusal(400, 50035, 'Invalid Form Body\nmessage_reference[REPLIES_CANNOT…]'))).toBe(
      true,
    );
    expect(isQuoteRefused(refusal(400, 50035, 'Invalid Form Body\ncontent[…]'))).toBe(false);
  });

  it("keeps the address out of a refusal's reason", () => {
    const error = Object.assign(new Error('Cannot POST'), { status: 400, code: 1, url: 'https://x/secret' });
    expect(readRefusal(error)?.reason).not.toContain('secret');
  });
});
