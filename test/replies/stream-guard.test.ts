import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sanitizeOutbound } from '../../src/replies/sanitize.ts';
import { judgeSilence } from '../../src/replies/silence.ts';
import type { SilenceContext } from '../../src/replies/silence-grammar.ts';
import { createStreamGuard, visibleWhileStreaming } from '../../src/replies/stream-guard.ts';
import { check, contexts, cutAt, tokenTexts } from './reply-generators.ts';

/** All that was ever on the screen while `deltas` came in. */
function shownDuring(deltas: readonly string[], context: SilenceContext): string[] {
  const guard = createStreamGuard(context);
  return deltas.map((delta) => guard.push(delta));
}

function decided(text: string, context: SilenceContext): string {
  const verdict = judgeSilence(sanitizeOutbound(text).text, context);
  return verdict.kind === 'silent' ? '' : verdict.text;
}

const SILENT_FORMS = [
  'NO_REPLY',
  'no_reply',
  'No_reply',
  '  \n NO_REPLY',
  '**NO_REPLY**',
  '`NO_REPLY`',
  '"NO_REPLY"',
  '_no_reply_',
  'NO_REPLY.',
  '{"action":"NO_REPLY"}',
  '{ "action": "no_reply" }\n',
  '```json\n{"action":"NO_REPLY"}\n```',
  '```\nNO_REPLY\n```',
  '<think>Nothing to add. NO</think>NO_REPLY',
  '<think>quiet</think>\n\n{"action":"NO_REPLY"}',
  '[[reply_to_current]] NO_REPLY',
  'NO_REPLY\nNO_REPLY',
];

describe('createStreamGuard', () => {
  it.each(SILENT_FORMS)(
    'pitfall 16: shows no prefix of %j at any split, nor character by character',
    (text) => {
      for (let cut = 0; cut <= text.length; cut += 1) {
        for (let next = cut; next <= text.length; next += 1) {
          const shown = shownDuring([text.slice(0, cut), text.slice(cut, next), text.slice(next)], 'chat');
          expect(shown.join('')).toBe('');
        }
      }
      expect(shownDuring([...text], 'chat').join('')).toBe('');
    },
  );

  it.each(['\nNO_REPLY', ' no_reply', '\n\n**NO_REPLY**', '\n`NO_REPLY`.', ' NO_REPLY NO_REPLY'])(
    'pitfall 16: shows no part of the token at the end of a text: %j',
    (end) => {
      const shown = shownDuring([...`All is well.${end}`], 'chat');
      expect(shown.at(-1)).toBe('All is well.');
    },
  );

  it.each(['NO_REPLY\nSee this', 'NO_REPLY See this', '**NO_REPLY**\nSee this', 'no_reply. See this'])(
    'shows only the rest of a text that begins with the token: %j',
    (text) => {
      const shown = shownDuring([...text, ' now'], 'chat');
      expect(shown.at(-1)).toBe('See this now');
      expect(shown.some((each) => /no_/i.test(each))).toBe(false);
    },
  );

  it('shows natural text as soon as it can be told from the token', () => {
    const guard = createStreamGuard('chat');
    expect(guard.push('N')).toBe('');
    expect(guard.push('o')).toBe('');
    expect(guard.push(',')).toBe('No,');
    expect(createStreamGuard('chat').push('No problem')).toBe('No problem');
    expect(createStreamGuard('chat').push('No')).toBe('');
    expect(createStreamGuard('chat').push('Now')).toBe('Now');
    expect(createStreamGuard('chat').push('{"a":1')).toBe('{"a":1');
    expect(createStreamGuard('chat').push('a <b> c')).toBe('a <b> c');
    expect(createStreamGuard('chat').push('I <3 you')).toBe('I <3 you');
    expect(createStreamGuard('chat').push('see [docs')).toBe('see [docs');
    expect(createStreamGuard('chat').push('NO_REPLY: means silence')).toBe('NO_REPLY: means silence');
  });

  it('holds of natural prose never more than its last word', () => {
    const words = fc.array(
      fc.constantFrom('No', 'now', 'Never', 'reply', 'no', 'it', 'is', 'fine,', 'N.', '3'),
      {
        minLength: 2,
        maxLength: 20,
      },
    );
    check(
      fc.property(words, (list) => {
        const text = `It ${list.join(' ')}`;
        const shown = visibleWhileStreaming(text, 'chat');
        expect(shown.length).toBeGreaterThanOrEqual(text.lastIndexOf(' '));
      }),
    );
  });

  it('shows only beginnings of what is sent in the end, and never takes back, at every chunking', () => {
    check(
      fc.property(tokenTexts, contexts, fc.array(fc.nat(), { maxLength: 12 }), (text, context, cuts) => {
        const end = decided(text, context);
        const shown = shownDuring(cutAt(text, cuts), context);
        for (const [index, each] of shown.entries()) {
          expect(end.startsWith(each)).toBe(true);
          expect(each.startsWith(shown[index - 1] ?? '')).toBe(true);
        }
      }),
    );
  });

  it('shows only beginnings of what is sent in the end, character by character', () => {
    check(
      fc.property(tokenTexts, contexts, (text, context) => {
        const end = decided(text, context);
        for (let length = 0; length <= text.length; length += 1) {
          const shown = visibleWhileStreaming(text.slice(0, length), context);
          if (!end.startsWith(shown)) expect({ written: text.slice(0, length), shown }).toEqual({ end });
        }
      }),
    );
  });
});
