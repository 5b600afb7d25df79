import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plainText } from '#contracts/formatted-text.ts';
import { conversationId, messageId, partKey } from '#contracts/ids.ts';
import type { Outbound, OutboundContent, SendResult } from '#contracts/outbound.ts';
import { type Answer, faultOf, refused, sentAnyway } from '../../../channels/signal/failures.ts';
import {
  botOf,
  groupRecipient,
  isGroupId,
  messageIdOf,
  readMessageId,
  recipientOf,
  routeOf,
} from '../../../channels/signal/ids.ts';
import { readSent, toCall } from '../../../channels/signal/outbound.ts';
import { decodeBase64, recipientKind } from '../../platforms/signal/recipients.ts';

const aci = '0a1b2c3d-0000-4000-8000-00000000000a';
const ada = '0a1b2c3d-1111-4000-8000-00000000000b';
const bot = botOf({ aci, number: '+15550000001', name: 'Parley' });
const group = Buffer.alloc(32, 7).toString('base64');

const outbound = (content: OutboundContent, to = ada, replyTo?: string): Outbound => ({
  key: partKey('r:1:t'),
  route: { ...routeOf(bot, to), ...(replyTo === undefined ? {} : { replyTo: messageId(replyTo) }) },
  content,
});
const callOf = (content: OutboundContent, to?: string, replyTo?: string) =>
  toCall(outbound(content, to, replyTo), { bot, quotedText: 'what was asked' });
const text = (value: string): OutboundContent => ({ kind: 'text', text: plainText(value) });
const own = (timestamp: number) => messageIdOf({ author: aci, timestamp });

describe('ids', () => {
  it('encodes group ids twice, as the server expects, and reads them back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const internalId = Buffer.from(bytes).toString('base64');
        expect(isGroupId(internalId)).toBe(true);
        const recipient = groupRecipient(internalId);
        expect(recipientKind(recipient)).toBe('group');
        expect(decodeBase64(recipient.slice('group.'.length))?.toString()).toBe(internalId);
        expect(recipientOf(conversationId(internalId))).toBe(recipient);
      }),
    );
  });

  it('sends to people by ACI only', () => {
    expect(recipientOf(conversationId(ada))).toBe(ada);
    for (const other of ['+15550001111', 'ada.42', 'group.abc', '', Buffer.alloc(16).toString('base64')])
      expect(recipientOf(conversationId(other))).toBeUndefined();
  });

  it('reads author and time back from message ids', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.nat({ max: 8.64e15 }), (author, timestamp) => {
        expect(readMessageId(messageIdOf({ author, timestamp }))).toEqual({ author, timestamp });
      }),
    );
    for (const bad of ['', '5', `${ada}`, `${ada}:`, `${ada}:x`, `${ada}:99999999999999999`, 'bob:5'])
      expect(readMessageId(bad)).toBeUndefined();
  });
});

describe('a send', () => {
  it('states the text mode of every send, so that the server applies no default', () => {
    expect(callOf(text('2 * 3'))).toEqual({
      kind: 'send',
      request: { number: bot.number, recipients: [ada], message: '2 * 3', text_mode: 'normal' },
    });
    const bold: OutboundContent = {
      kind: 'text',
      text: { text: '2 * 3', spans: [{ kind: 'bold', start: 4, length: 1 }] },
    };
    expect(callOf(bold)).toMatchObject({ request: { message: '2 \\* **3**', text_mode: 'styled' } });
  });

  it('quotes the message it answers, with times as numbers', () => {
    const question = messageIdOf({ author: ada, timestamp: 1_700_000_000_123 });
    expect(callOf(text('x'), group, question)).toMatchObject({
      request: {
        recipients: [groupRecipient(group)],
        quote_timestamp: 1_700_000_000_123,
        quote_author: ada,
        quote_message: 'what was asked',
      },
    });
    expect(callOf(text('x'), group, 'nonsense')).not.toHaveProperty('request.quote_timestamp');
  });

  it('announces a file under a name that cannot end its field', () => {
    const media = (name: string, mimeType = 'image/png'): OutboundContent => ({
      kind: 'media',
      path: '/tmp/x',
      mimeType,
      name,
      caption: plainText('look'),
    });
    expect(callOf(media('a.png'))).toEqual({
      kind: 'send-files',
      request: { number: bot.number, recipients: [ada], message: 'look', text_mode: 'normal' },
      files: [{ path: '/tmp/x', dataUri: 'data:image/png;filename=a.png;base64,' }],
    });
    const nasty = callOf(media('a;base64,b"\n../x.png', 'image/png;base64,'));
    expect(nasty).toMatchObject({
      files: [{ dataUri: 'data:application/octet-stream;filename=a_base64_b__.._x.png;base64,' }],
    });
    expect(callOf(media(''))).toMatchObject({
      files: [{ dataUri: 'data:image/png;filename=file;base64,' }],
    });
  });

  it('makes no call for ids and texts that Signal does not accept', () => {
    expect(callOf(text('x'), '+15550001111').kind).toBe('none');
    expect(callOf(text('x'.repeat(4001))).kind).toBe('none');
    expect(callOf({ kind: 'delete', messageId: messageIdOf({ author: ada, timestamp: 5 }) }).kind).toBe(
      'none',
    );
    expect(callOf({ kind: 'edit', messageId: messageId('5'), text: plainText('x') }).kind).toBe('none');
    expect(callOf({ kind: 'reaction', messageId: messageId('5'), emoji: '👍' }).kind).toBe('none');
  });
});

describe('changes', () => {
  it('names a changed message by time, and for reactions by author, too', () => {
    expect(callOf({ kind: 'edit', messageId: own(5), text: plainText('x') })).toMatchObject({
      request: { edit_timestamp: 5, message: 'x' },
    });
    expect(callOf({ kind: 'delete', messageId: own(5) }, group)).toEqual({
      kind: 'delete',
      request: { recipient: groupRecipient(group), timestamp: 5 },
    });
    const target = { recipient: ada, target_author: ada, timestamp: 7 };
    const theirs = messageIdOf({ author: ada, timestamp: 7 });
    expect(callOf({ kind: 'reaction', messageId: theirs, emoji: '⚠️' })).toEqual({
      kind: 'react',
      request: { ...target, reaction: '⚠️' },
    });
    expect(callOf({ kind: 'reaction', messageId: theirs, emoji: '' })).toEqual({
      kind: 'unreact',
      request: target,
    });
    expect(callOf({ kind: 'reaction', messageId: theirs, emoji: '👀', isRemoved: true })).toEqual({
      kind: 'unreact',
      request: { ...target, reaction: '👀' },
    });
  });
});

const edit: OutboundContent = { kind: 'edit', messageId: own(5), text: plainText('x') };
const failed = (reason: string) => ({ recipients: [{ number: '', uuid: ada, reason }] });

describe('responses', () => {
  it.each([
    ['an object', { timestamp: '1700000000123' }],
    ['an array', [{ timestamp: '1700000000123' }]],
  ])('reads the id of the sent message from %s', (_form, body) => {
    const { result, missed } = readSent(body, outbound(text('x')), bot);
    expect(result).toEqual({ kind: 'sent', receipts: [`${aci}:1700000000123`] });
    expect(missed).toBe(0);
  });

  it("keeps the message's first id after an edit", () => {
    expect(readSent({ timestamp: '9' }, outbound(edit), bot).result).toEqual({
      kind: 'sent',
      receipts: [own(5)],
    });
  });

  it('counts an unreadable success as sent, without an id', () => {
    expect(readSent('what?', outbound(text('x')), bot).result).toEqual({ kind: 'sent', receipts: [] });
  });

  it('counts a group send that missed members as sent and says how many', () => {
    const body = [{ timestamp: '9', errors: failed('UNREGISTERED_FAILURE') }];
    const { result, missed } = readSent(body, outbound(text('x'), group), bot);
    expect([result.kind, missed]).toEqual(['sent', 1]);
  });

  it('counts a direct send that nobody received as failed', () => {
    const answer = (reason: string) =>
      readSent([{ timestamp: '9', errors: failed(reason) }], outbound(text('x')), bot).result;
    expect(answer('UNREGISTERED_FAILURE')).toMatchObject({
      kind: 'failed',
      failure: { kind: 'unreachable' },
    });
    expect(answer('NETWORK_FAILURE').kind).toBe('retry');
  });
});

describe('refusals', () => {
  const refusal = (status: number, body: unknown, content = text('x')) =>
    refused({ status, body } satisfies Answer, content, bot.number);
  const inWords = (error: string, content?: OutboundContent) => refusal(400, { error }, content).result;
  const failureOf = (result: SendResult) => (result.kind === 'failed' ? result.failure.kind : result.kind);

  it.each([
    ['User +15550000001 is not registered.', 'unauthorised'],
    ['User +15550009999 is not registered.', 'unreachable'],
    [`Unregistered user "${ada}"`, 'unreachable'],
    ['User is not a member in group: Team (abc)', 'unreachable'],
    ['Group not found: abc', 'unreachable'],
    ['Unable to complete request due to untrusted recipient keys', 'rejected'],
    ["Couldn't process request - invalid request", 'rejected'],
    ['write tcp 127.0.0.1:6001: use of closed network connection', 'retry'],
    ['Failed to send message', 'retry'],
    ['process killed as timeout reached', 'unknown'],
    ["invalid character 'j' after top-level value", 'unknown'],
    ['strconv.ParseInt: parsing "": invalid syntax', 'unknown'],
  ])('reads %j as %s', (words, kind) => {
    expect(failureOf(inWords(words))).toBe(kind);
  });

  it.each([
    ['"WARN  Manager - No profile name set.\\n1700000000123"', '1700000000123'],
    ['"1700000000123\\njava.lang.Error\\n\\tat Main 1234567890123"', '1700000000123'],
    [
      '"Failed to send (some) messages:\\nUntrusted Identity for \\"+1555\\"\\n1700000000123\\n"',
      '1700000000123',
    ],
    ['"no time"', undefined],
  ])('finds the message that was sent although the server could not read %s', (output, timestamp) => {
    const error = `strconv.ParseInt: parsing ${output}: invalid syntax`;
    expect(sentAnyway({ status: 400, body: { error } })?.timestamp).toBe(timestamp);
  });

  it('waits after a challenge until the captcha is solved and reports it', () => {
    const { result, challenge } = refusal(429, {
      error: 'rate limiting',
      challenge_tokens: ['tok'],
      account: '+1',
    });
    expect(challenge).toBe('tok');
    expect(result.kind === 'retry' && result.afterMs).toBeGreaterThan(60_000);
  });

  it('reports a limited send without a challenge as unknown, and repeats a change', () => {
    const body = { error: 'rate limiting', challenge_tokens: [''], account: '+1' };
    expect(refusal(429, body)).toEqual({ result: expect.objectContaining({ kind: 'unknown' }) });
    expect(refusal(429, body, edit).result).toMatchObject({ kind: 'retry' });
    expect(inWords('Failed to send message due to rate limiting\n').kind).toBe('unknown');
  });

  it.each([502, 503, 504, 413])("learns nothing about a message from a proxy's answer (%i)", (status) => {
    expect(refusal(status, '<html>').result.kind).toBe('unknown');
    expect(refusal(status, '<html>', edit).result.kind).toBe('retry');
  });
});

describe('refusals by a proxy', () => {
  it.each([401, 403, 404])('retries a call later that a proxy refused with %i', (status) => {
    for (const body of ['404 page not found', { error: 'no such service' }])
      expect(refused({ status, body }, text('x'), bot.number).result).toMatchObject({
        kind: 'retry',
        afterMs: 60_000,
      });
  });
});

describe('missing responses', () => {
  const fault = (code: string, cause?: unknown) => Object.assign(new Error('x', { cause }), { code });

  it('keeps retrying while nothing listens', () => {
    for (const error of [fault('ECONNREFUSED'), fault('UND_ERR_CONNECT_TIMEOUT'), fault('ENOTFOUND')])
      expect(faultOf(error, text('x'), false)).toMatchObject({ kind: 'retry', isOutage: true });
  });

  it('reports a message as unknown if the connection ended, and repeats a change', () => {
    for (const error of [
      fault('ECONNRESET'),
      fault('UND_ERR_SOCKET', fault('ECONNREFUSED')),
      new DOMException('late', 'TimeoutError'),
    ]) {
      expect(faultOf(error, text('x'), false).kind).toBe('unknown');
      expect(faultOf(error, edit, false).kind).toBe('retry');
    }
    const aborted = new DOMException('over', 'AbortError');
    expect(faultOf(aborted, text('x'), true).kind).toBe('unknown');
    expect(faultOf(aborted, edit, true).kind).toBe('retry');
  });
});
