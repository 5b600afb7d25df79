import { describe, expect, it } from 'vitest';
import { judgeSilence } from '../../src/replies/silence.ts';
import { silenceProperty } from './reply-generators.ts';

const silent = { kind: 'silent' };
const visible = (text: string) => ({ kind: 'visible', text });

describe('the silence decision', () => {
  it.each([
    'NO_REPLY',
    'no_reply',
    'No_Reply',
    '  NO_REPLY\n',
    'NO_REPLY.',
    '**NO_REPLY**',
    '`NO_REPLY`',
    '"NO_REPLY"',
    '_NO_REPLY_',
    '(NO_REPLY)',
    '[NO_REPLY]',
    '“NO_REPLY”',
    'NO_REPLY:',
    '```\nNO_REPLY\n```',
    'NO_REPLY\nNO_REPLY',
    'NO_REPLY NO_REPLY',
    'NO_REPLY ...',
    '{"action":"NO_REPLY"}',
    '{ "action" : "no_reply" }',
    '{\n  "action": "NO_REPLY"\n}',
    '```json\n{"action": "NO_REPLY"}\n```',
  ])('sends nothing for %j', (text) => {
    expect(judgeSilence(text, ['chat'])).toEqual(silent);
  });

  it.each([
    ['Noted.\n\nNO_REPLY', 'Noted.'],
    ['Noted. NO_REPLY', 'Noted.'],
    ['Noted. no_reply', 'Noted.'],
    ['Noted.NO_REPLY', 'Noted.'],
    ['Noted.\n**NO_REPLY**', 'Noted.'],
    ['Noted.\n`NO_REPLY`.', 'Noted.'],
    ['NO_REPLY\nBut do look at this.', 'But do look at this.'],
    ['NO_REPLY But do look at this.', 'But do look at this.'],
    ['NO_REPLY. But do look at this.', 'But do look at this.'],
    ['NO_REPLY\n\nBoth ends. NO_REPLY', 'Both ends.'],
    ['好的。NO_REPLY', '好的。'],
    ['👍 NO_REPLY', '👍'],
  ])('strips the token at an edge of %j and sends the rest', (text, rest) => {
    expect(judgeSilence(text, ['chat'])).toEqual(visible(rest));
  });

  it.each([
    'The token NO_REPLY means silence.',
    'NO_REPLY: this word keeps me quiet.',
    'NO_REPLY : this too',
    'NO_REPLY:\nthis too',
    'NO_REPLY\n: this too',
    'NO_REPLYING is not a word',
    'NO_REPLY_ALL is a setting',
    'NO_REPLY.md is a file',
    'Set it to `NO_REPLY`',
    'She wrote "NO_REPLY"',
    'MY_NO_REPLY',
    'x=NO_REPLY',
    'No, thanks',
    'No reply',
    'no-reply@example.com',
    '{"action":"NO_REPLY","why":"x"}',
    '{"action":"SOMETHING"}',
    '{"text":"NO_REPLY"}',
    'Here: {"action":"NO_REPLY"}',
  ])('treats %j as ordinary text', (text) => {
    expect(judgeSilence(text, ['chat'])).toEqual(visible(text));
  });

  it("doesn't swallow an answer that ends in the token (pitfall 17)", () => {
    expect(judgeSilence('The meeting is at ten. NO_REPLY', ['chat'])).toEqual(
      visible('The meeting is at ten.'),
    );
  });

  it("doesn't deliver the token if other text precedes it on its own line (pitfall 18)", () => {
    expect(judgeSilence('All is quiet.\nNO_REPLY\n', ['chat'])).toEqual(visible('All is quiet.'));
  });

  it('accepts in each context its own token and NO_REPLY only', () => {
    expect(judgeSilence('ANNOUNCE_SKIP', ['announce'])).toEqual(silent);
    expect(judgeSilence('REPLY_SKIP', ['agent-reply'])).toEqual(silent);
    expect(judgeSilence('{"action":"REPLY_SKIP"}', ['agent-reply'])).toEqual(silent);
    expect(judgeSilence('HEARTBEAT_OK', ['heartbeat'])).toEqual(silent);
    for (const context of ['heartbeat', 'announce', 'agent-reply'] as const) {
      expect(judgeSilence('NO_REPLY', [context])).toEqual(silent);
    }
    expect(judgeSilence('HEARTBEAT_OK', ['chat'])).toEqual(visible('HEARTBEAT_OK'));
    expect(judgeSilence('ANNOUNCE_SKIP', ['agent-reply'])).toEqual(visible('ANNOUNCE_SKIP'));
  });

  it('accepts the token of each source that its turn took', () => {
    for (const token of ['NO_REPLY', 'ANNOUNCE_SKIP', 'announce_skip.', '**Announce_Skip**'])
      expect(judgeSilence(token, ['chat', 'announce'])).toEqual(silent);
    expect(judgeSilence('REPLY_SKIP', ['chat', 'announce'])).toEqual(visible('REPLY_SKIP'));
    expect(judgeSilence('ANNOUNCE_SKIP\nREPLY_SKIP', ['announce', 'agent-reply'])).toEqual(silent);
    expect(judgeSilence('It is done. ANNOUNCE_SKIP', ['chat', 'announce'])).toEqual(visible('It is done.'));
  });

  it('sends what accompanies HEARTBEAT_OK if a turn took more than a heartbeat', () => {
    expect(judgeSilence('Yes, at ten. HEARTBEAT_OK', ['heartbeat', 'chat'])).toEqual(visible('Yes, at ten.'));
    expect(judgeSilence('HEARTBEAT_OK', ['heartbeat', 'chat'])).toEqual(silent);
  });

  it('sends nothing in a union if one of its sources alone is reason enough', () => {
    silenceProperty((text, context) => {
      const alone = context.map((source) => judgeSilence(text, [source]).kind);
      if (!context.includes('heartbeat') && alone.includes('silent'))
        expect(judgeSilence(text, context)).toEqual(silent);
      if (judgeSilence(text, context).kind === 'visible' && context.length === 1)
        expect(alone).toEqual(['visible']);
    });
  });

  it('drops up to 300 characters beside HEARTBEAT_OK, and sends more', () => {
    expect(judgeSilence(`HEARTBEAT_OK ${'x'.repeat(300)}`, ['heartbeat'])).toEqual(silent);
    expect(judgeSilence(`${'x'.repeat(301)}\nHEARTBEAT_OK`, ['heartbeat'])).toEqual(visible('x'.repeat(301)));
    expect(judgeSilence('The disk is full', ['heartbeat'])).toEqual(visible('The disk is full'));
  });

  it("doesn't treat an empty text as a decision to be silent", () => {
    expect(judgeSilence('  \n', ['chat'])).toEqual(visible(''));
  });

  it('leaves no silence token at an edge of any text', () => {
    silenceProperty((text, context) => {
      const once = judgeSilence(text, context);
      if (once.kind === 'silent') return;
      expect(once.text).toBe(once.text.trim());
      expect(/(?:^|\s)NO_REPLY$/i.test(once.text)).toBe(false);
    });
  });
});
