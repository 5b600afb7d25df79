import fc from 'fast-check';
import { anySource, type SilenceContext } from '../../src/replies/silence.ts';
import { budget, holds } from '../support/holds.ts';

/** Runs a property for about a second, or for its full count with PARLEY_LONG=1. */
export function check<T>(property: fc.IProperty<T>, fullRuns = 100_000): void {
  holds(property, budget(fullRuns, 800));
}

/** Every union of what a turn may take. */
export const contexts: fc.Arbitrary<SilenceContext> = fc.subarray([...anySource], { minLength: 1 });

/** Pieces of silence tokens, and what may surround them. */
const pieces = fc.constantFrom(
  'NO_REPLY',
  'no_reply',
  'No_Reply',
  'HEARTBEAT_OK',
  'ANNOUNCE_SKIP',
  'reply_skip',
  'NO_',
  'NO',
  'REPLY',
  'N',
  '_',
  '{"action":"NO_REPLY"}',
  '{ "action" : "reply_skip" }',
  '{"action":',
  '"',
  '{',
  '}',
  '```',
  '```json\n',
  '`',
  ' ',
  '  ',
  '\n',
  '\n\n',
  '\t',
  '*',
  '**',
  '~~',
  '.',
  '...',
  ':',
  ' : ',
  '：',
  '!',
  '(',
  ')',
  '[',
  ']',
  '“',
  '”',
  '。',
  'No, ',
  'No problem',
  'Hello',
  'x',
  '好的',
  '👍',
  '👨‍👩‍👧',
  'é',
  '<think>',
  '</think>',
  '<think>a</think>',
  '<',
  '<<<',
  '>',
  '[[reply_to_current]]',
  '[[reply_to:12]]',
  '[[',
  '<|im_end|>',
  '\u001b[31m',
  '\u001b]8;;x\u0007',
  '\r\n',
  '\u200b',
  '\u202e',
  '<tool_call>',
  '</tool_call>',
  '<b>',
  '<3',
  'a < b',
  '\ud83d',
  '\u0000',
  '`<think>`',
  '🏴󠁧󠁢󠁥󠁮󠁧󠁿',
  '~~~\n',
  'word '.repeat(70),
);

export const tokenTexts: fc.Arbitrary<string> = fc
  .array(pieces, { maxLength: 9 })
  .map((parts) => parts.join(''));

export function silenceProperty(holds: (text: string, context: SilenceContext) => void): void {
  check(fc.property(tokenTexts, contexts, (text, context) => holds(text, context)));
}

/** Cuts a text at any UTF-16 unit, even inside surrogate pairs. */
export function cutAt(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((start, index) => text.slice(start, at[index] ?? text.length));
}

/** Replies that try to ping, spoof, break out or break something (threat 11). */
export const hostileReply = fc
  .array(
    fc.constantFrom(
      '@everyone',
      '@here',
      '<@123>',
      '<@&456>',
      '[x](tg://user?id=1)',
      '[a](tg://resolve?domain=b)',
      '<tg://user?id=7>',
      '[https://bank.example](https://evil.example)',
      '[x](javascript:alert(1))',
      '[x](discord://-/channels/1)',
      '![i](tg://user?id=2)',
      '\u202e',
      '\u2066',
      '\u200b',
      '\u2060',
      '\ufeff',
      '\u001b[31m',
      '\u001b]8;;https://evil.example\u0007',
      '\u001b]0;t',
      '\u009b2J',
      '\u0000',
      '\u0007',
      '\ud83d',
      '\udc00',
      '**',
      '__',
      '~~',
      '`',
      '```',
      '```js\n',
      '||',
      '[',
      '](',
      ')',
      '<b>',
      '</b>',
      '<a href="tg://user?id=3">',
      '&lt;',
      '\\',
      '\n',
      '\n\n',
      '\r',
      '> ',
      '- ',
      '# ',
      '| a |\n|---|\n',
      'Hello',
      ' ',
      'word ',
      '👨‍👩‍👧',
      '<think>',
      '</think>',
      '<|im_end|>',
      '<<<untrusted 1 x>>>',
    ),
    { minLength: 1, maxLength: 40 },
  )
  .map((parts) => parts.join(''));
