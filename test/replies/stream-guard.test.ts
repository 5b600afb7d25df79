import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { visibleWhileStreaming } from '../../src/replies/preview.ts';
import { sanitizeOutbound } from '../../src/replies/scaffolding.ts';
import { judgeSilence, type SilenceContext } from '../../src/replies/silence.ts';
import { check, contexts, cutAt, tokenTexts } from './reply-generators.ts';

/** Returns everything that was ever visible while `deltas` came in. */
function shownDuring(deltas: readonly string[], context: SilenceContext): string[] {
  return deltas.map((_, last) => visibleWhileStreaming(deltas.slice(0, last + 1).join(''), context));
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

describe('the visible part of an unfinished text', () => {
  it.each(SILENT_FORMS)(
    'shows no prefix of %j at any split, nor character by character (pitfall 16)',
    (text) => {
      for (let cut = 0; cut <= text.length; cut += 1) {
        for (let next = cut; next <= text.length; next += 1) {
          const shown = shownDuring([text.slice(0, cut), text.slice(cut, next), text.slice(next)], ['chat']);
          expect(shown.join('')).toBe('');
        }
      }
      expect(shownDuring([...text], ['chat']).join('')).toBe('');
    },
  );

  it.each(['\nNO_REPLY', ' no_reply', '\n\n**NO_REPLY**', '\n`NO_REPLY`.', ' NO_REPLY NO_REPLY'])(
    'shows no part of the token at the end of a text: %j (pitfall 16)',
    (end) => {
      const shown = shownDuring([...`All is well.${end}`], ['chat']);
      expect(shown.at(-1)).toBe('All is well.');
    },
  );

  it.each(['NO_REPLY\nSee this', 'NO_REPLY See this', '**NO_REPLY**\nSee this', 'no_reply. See this'])(
    'shows only the rest of a text that begins with the token: %j',
    (text) => {
      const shown = shownDuring([...text, ' now'], ['chat']);
      expect(shown.at(-1)).toBe('See this now');
      expect(shown.some((each) => /no_/i.test(each))).toBe(false);
    },
  );

  it('shows natural text as soon as it differs from the token', () => {
    const shown = (text: string) => visibleWhileStreaming(text, ['chat']);
    expect(['N', 'No', 'No,'].map(shown)).toEqual(['', '', 'No,']);
    for (const text of ['Now', '{"a":1', 'a <b> c', 'I <3 you', 'see [docs', 'NO_REPLY: means silence'])
      expect(shown(text)).toBe(text);
    expect(shown('No problem')).toBe('No problem');
  });

  it('holds back at most the last word of natural prose', () => {
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
        const shown = visibleWhileStreaming(text, ['chat']);
        expect(shown.length).toBeGreaterThanOrEqual(text.lastIndexOf(' '));
      }),
    );
  });

  it('shows only beginnings of what is sent in the end, at every chunking', () => {
    check(
      fc.property(tokenTexts, contexts, fc.array(fc.nat(), { maxLength: 12 }), (text, context, cuts) => {
        const end = decided(text, context);
        for (const each of shownDuring(cutAt(text, cuts), context)) expect(end.startsWith(each)).toBe(true);
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
