import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import { accountId, channelId, conversationId, messageId, partKey, threadId } from '#contracts/ids.ts';
import type { OutboundContent, OutboundFile } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { failureOf } from '../../../channels/telegram/failures.ts';
import { toCall } from '../../../channels/telegram/outbound.ts';
import { entitiesOf } from '../../../channels/telegram/outbound-entities.ts';
import type { Span } from '../../../src/contracts/formatted-text.ts';
import { readSentText } from '../../platforms/telegram/entities.ts';
import { reactionEmoji } from '../../platforms/telegram/reactions.ts';
import { holds } from '../../support/holds.ts';

const route: ReplyRoute = {
  channel: channelId('telegram'),
  account: accountId('700'),
  conversation: conversationId('-1001'),
};
const callOf = (content: OutboundContent, place: Partial<ReplyRoute> = {}, sizeBytes = 0) =>
  toCall({ key: partKey('r:1:t'), route: { ...route, ...place }, content }, [sizeBytes]);
const text = (value: string): OutboundContent => ({ kind: 'text', text: plainText(value) });
const media = (fields: Partial<OutboundFile> = {}): OutboundContent => ({
  kind: 'media',
  path: '/tmp/a.png',
  mimeType: 'image/png',
  name: 'a.png',
  ...fields,
});

describe('a send', () => {
  it('sends text without a link preview and without a parse mode', () => {
    const call = callOf(text('see https://example.org'));
    expect(call).toEqual({
      method: 'sendMessage',
      payload: {
        chat_id: -1001,
        text: 'see https://example.org',
        entities: [],
        link_preview_options: { is_disabled: true },
      },
    });
  });

  it('names the topic of a send, but never the General topic', () => {
    expect(callOf(text('x'), { thread: threadId('5') })).toMatchObject({ payload: { message_thread_id: 5 } });
    expect(callOf(text('x'), { thread: threadId('1') })).not.toHaveProperty('payload.message_thread_id');
  });

  it('sends a reply even if the message it quotes may be gone', () => {
    expect(callOf(text('x'), { replyTo: messageId('9') })).toMatchObject({
      payload: { reply_parameters: { message_id: 9, allow_sending_without_reply: true } },
    });
  });

  it("makes no call for a conversation or message id that is not Telegram's", () => {
    expect(callOf(text('x'), { conversation: conversationId('abc') }).method).toBe('none');
    expect(callOf({ kind: 'delete', messageId: messageId('x1') }).method).toBe('none');
  });

  it('sends pictures of up to 10 MB as photos and everything else as files', () => {
    expect(callOf(media(), {}, 9_000_000).method).toBe('sendPhoto');
    expect(callOf(media(), {}, 11_000_000).method).toBe('sendDocument');
    expect(callOf(media({ mimeType: 'image/svg+xml' })).method).toBe('sendDocument');
    expect(callOf(media({ mimeType: 'application/pdf' })).method).toBe('sendDocument');
  });

  it('sends each type as what Telegram shows best', () => {
    const methodOf = (mimeType: string) => callOf(media({ mimeType })).method;
    expect(methodOf('video/mp4')).toBe('sendVideo');
    expect(methodOf('image/gif')).toBe('sendAnimation');
    expect(methodOf('audio/mpeg')).toBe('sendAudio');
    expect(methodOf('audio/mp4')).toBe('sendAudio');
    for (const mimeType of ['video/quicktime', 'video/webm', 'audio/ogg', 'image/heic', 'text/plain'])
      expect(methodOf(mimeType)).toBe('sendDocument');
  });

  it('keeps a file name from ending the header that contains it', () => {
    const name = 'a"; name="chat_id"\r\n\r\n666\r\n/../../x.pdf';
    const call = callOf(media({ name }));
    expect(call).toHaveProperty('file.name');
    expect('file' in call ? call.file.name : '').not.toMatch(/["';\r\n/\\]/);
    expect(callOf(media({ name: '' }))).toMatchObject({ file: { name: 'file' } });
  });

  it('reacts only with emoji that Telegram accepts, and clears a reaction with an empty list', () => {
    const reactionTo = (emoji: string) => {
      const call = callOf({ kind: 'reaction', messageId: messageId('4'), emoji });
      return call.method === 'setMessageReaction' ? call.payload.reaction : undefined;
    };
    expect(reactionTo('❤️')).toEqual([{ type: 'emoji', emoji: '❤' }]);
    expect(reactionTo('')).toEqual([]);
    const cleared = callOf({ kind: 'reaction', messageId: messageId('4'), emoji: '👀', isRemoved: true });
    expect(cleared).toMatchObject({ payload: { reaction: [] } });
    const taken = [...reactionEmoji].map((emoji) => ({ type: 'emoji', emoji }));
    for (const emoji of ['⚠️', '✅', '❌', '⏳', '👀']) expect(taken).toContainEqual(reactionTo(emoji)?.[0]);
  });
});

describe('entities', () => {
  const over = (kind: 'bold' | 'italic' | 'code' | 'quote', start: number, length: number): Span => ({
    kind,
    start,
    length,
  });
  const link = (start: number, length: number, url: string): Span => ({ kind: 'link', start, length, url });
  const listed = (value: string, ...spans: Span[]) => entitiesOf({ text: value, spans });

  it("gives entities Telegram's names and offsets", () => {
    const spans: Span[] = [
      { kind: 'spoiler', start: 0, length: 2 },
      link(3, 2, 'https://example.org/'),
      { kind: 'code-block', start: 6, length: 2, language: 'ts' },
    ];
    expect(listed('ab cd ef', ...spans)).toEqual([
      { type: 'spoiler', offset: 0, length: 2 },
      { type: 'text_link', offset: 3, length: 2, url: 'https://example.org/' },
      { type: 'pre', offset: 6, length: 2, language: 'ts' },
    ]);
  });

  it('puts no style around code, except a quote', () => {
    expect(listed('a code b', over('bold', 0, 8), over('code', 2, 4))).toEqual([
      { type: 'bold', offset: 0, length: 2 },
      { type: 'code', offset: 2, length: 4 },
      { type: 'bold', offset: 6, length: 2 },
    ]);
    expect(listed('a code b', over('quote', 0, 8), over('code', 2, 4))).toHaveLength(2);
  });

  it('keeps a link whose text is code', () => {
    expect(listed('foo()', link(0, 5, 'https://a.example'), over('code', 0, 5))).toMatchObject([
      { type: 'text_link' },
    ]);
  });

  it('cuts half-overlapping styles at the edge', () => {
    expect(listed('abcdef', over('bold', 0, 4), over('italic', 2, 4))).toEqual([
      { type: 'bold', offset: 0, length: 4 },
      { type: 'italic', offset: 2, length: 2 },
      { type: 'italic', offset: 4, length: 2 },
    ]);
  });

  it('never cuts a character in two with a style', () => {
    expect(listed('a👋b', over('bold', 2, 2))).toEqual([{ type: 'bold', offset: 1, length: 3 }]);
  });

  it.each(['tg://user?id=501', 'javascript:alert(1)', 'file:///etc/passwd', 'mailto:a@b.c', 'https://a b'])(
    'makes no link of %s, which would ping, be refused or mislead',
    (url) => {
      expect(listed('click me', link(0, 8, url))).toEqual([]);
    },
  );

  it('keeps every link of a text that has more styles than Telegram accepts', () => {
    const lines = Array.from({ length: 90 }, (_, line) => [
      over('bold', line * 10, 3),
      over('italic', line * 10 + 3, 3),
      link(line * 10 + 6, 3, `https://example.org/${line}`),
    ]);
    const entities = listed('abcdefghi\n'.repeat(90), ...lines.flat());
    expect(entities).toHaveLength(100);
    expect(entities.filter(({ type }) => type === 'text_link')).toHaveLength(90);
    expect(entities).toEqual([...entities].sort((a, b) => a.offset - b.offset));
  });

  it('produces entities that the platform accepts for any spans', () => {
    const piece = fc.constantFrom('a', 'b c', ' ', '\n', '👋', '👨‍👩‍👧', 'é', '`', '<b>', '@ada');
    const span = fc.record({
      kind: fc.constantFrom(
        'bold',
        'italic',
        'underline',
        'strikethrough',
        'spoiler',
        'code',
        'quote',
        'link',
        'code-block',
      ),
      start: fc.integer({ min: -3, max: 40 }),
      length: fc.integer({ min: -2, max: 30 }),
      url: fc.constantFrom('https://example.org', 'tg://user?id=1', ''),
    });
    const property = fc.property(
      fc.array(piece, { maxLength: 20 }),
      fc.array(span, { maxLength: 8 }),
      (pieces, spans) => {
        const value: FormattedText = { text: `x${pieces.join('')}y`, spans: spans as unknown as Span[] };
        expect(readSentText(value.text, entitiesOf(value), 4096).text).toBe(value.text);
      },
    );
    holds(property, { interruptAfterTimeLimit: 1500, numRuns: 1_000_000 });
  });
});

describe('failed calls', () => {
  const refusal = (code: number, description: string, parameters: object = {}) =>
    Object.assign(new Error('Call failed'), { error_code: code, description, parameters });
  const network = (cause: object) => Object.assign(new Error('Network request failed'), { error: { cause } });
  const sendOf = (error: unknown) => failureOf(error, text('x'), false);
  const edit: OutboundContent = { kind: 'edit', messageId: messageId('4'), text: plainText('x') };

  it.each([
    [429, 'Too Many Requests: retry after 13', { retry_after: 13 }, { kind: 'retry', afterMs: 13_000 }],
    [400, "Bad Request: can't parse entities: unclosed", {}, { kind: 'failed', failure: { kind: 'markup' } }],
    [
      400,
      'Bad Request: entity beginning at UTF-16 offset 3 ends after the end of the text at UTF-16 offset 9',
      {},
      { failure: { kind: 'markup' } },
    ],
    [400, 'Bad Request: ENTITY_BOUNDS_INVALID', {}, { failure: { kind: 'markup' } }],
    [400, "Bad Request: entity URL 'x' is invalid: Wrong HTTP URL", {}, { failure: { kind: 'markup' } }],
    [400, 'Bad Request: message thread not found', {}, { failure: { kind: 'thread-gone' } }],
    [400, 'Bad Request: TOPIC_DELETED', {}, { failure: { kind: 'thread-gone' } }],
    [400, 'Bad Request: chat not found', {}, { failure: { kind: 'unreachable' } }],
    [403, 'Forbidden: bot was blocked by the user', {}, { failure: { kind: 'unreachable' } }],
    [403, 'Forbidden: bot was kicked from the supergroup chat', {}, { failure: { kind: 'unreachable' } }],
    [
      400,
      'Bad Request: group chat was upgraded to a supergroup chat',
      { migrate_to_chat_id: -1009 },
      { failure: { kind: 'migrated', to: '-1009' } },
    ],
    [401, 'Unauthorized', {}, { failure: { kind: 'unauthorised' } }],
    [400, 'Bad Request: message is too long', {}, { failure: { kind: 'rejected' } }],
    [
      400,
      'Bad Request: not enough rights to send text messages to the chat',
      {},
      { failure: { kind: 'rejected' } },
    ],
    [500, 'Internal Server Error', {}, { kind: 'retry' }],
    [500, 'Internal Server Error: restart', {}, { kind: 'unknown' }],
    [502, 'Bad Gateway', {}, { kind: 'unknown' }],
    [504, 'Gateway Timeout', {}, { kind: 'unknown' }],
  ])(
    'decides what becomes of a call that is refused with %i %s',
    (code, description, parameters, expected) => {
      expect(sendOf(refusal(code, description, parameters))).toMatchObject(expected);
    },
  );

  it.each(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT', 'CERT_HAS_EXPIRED'])(
    'repeats a request that never left because of %s',
    (code) => {
      expect(sendOf(network({ code })).kind).toBe('retry');
    },
  );

  it.each(['ECONNRESET', 'UND_ERR_SOCKET', 'ETIMEDOUT', 'EPIPE'])(
    'reports a send as unknown after %s, because it may have arrived',
    (code) => {
      expect(sendOf(network({ code, syscall: 'read' })).kind).toBe('unknown');
    },
  );

  it('repeats a send if connecting failed on every address; any other error makes it unknown', () => {
    const refused = { code: 'ECONNREFUSED', syscall: 'connect' };
    const timedOut = { code: 'ETIMEDOUT', syscall: 'connect' };
    expect(sendOf(network({ code: 'ECONNREFUSED', errors: [refused, timedOut] })).kind).toBe('retry');
    expect(sendOf(network({ code: 'ECONNRESET', errors: [refused] })).kind).toBe('unknown');
    expect(sendOf(new Error('anything')).kind).toBe('unknown');
  });

  it('repeats any failed edit, deletion or reaction, because a second time changes nothing', () => {
    for (const content of [
      edit,
      { kind: 'delete', messageId: messageId('4') },
      { kind: 'reaction', messageId: messageId('4'), emoji: '👍' },
    ] as const) {
      expect(failureOf(network({ code: 'ECONNRESET' }), content, false).kind).toBe('retry');
      expect(failureOf(refusal(502, 'Bad Gateway'), content, false).kind).toBe('retry');
      expect(failureOf(new Error('The wait was ended.'), content, true).kind).toBe('retry');
    }
  });

  it('counts a change that is already in force as sent', () => {
    expect(failureOf(refusal(400, 'Bad Request: message is not modified: …'), edit, false)).toEqual({
      kind: 'sent',
      receipts: ['4'],
    });
    const deletion: OutboundContent = { kind: 'delete', messageId: messageId('4') };
    expect(failureOf(refusal(400, 'Bad Request: message to delete not found'), deletion, false).kind).toBe(
      'sent',
    );
    expect(failureOf(refusal(400, 'Bad Request: message to edit not found'), edit, false).kind).toBe(
      'failed',
    );
  });

  it("keeps the address, which contains the token, out of a failed send's result", () => {
    const error = network({ code: 'ECONNRESET', message: 'http://api/bot700:SECRET/sendMessage' });
    expect(JSON.stringify(sendOf(error))).not.toContain('SECRET');
  });
});
