import fc from 'fast-check';

/** A text that can be made arbitrarily long, by repeating or nesting a unit. */
export type Shape = {
  readonly prefix: string;
  readonly unit: string;
  /** Closes each unit again if they are nested. */
  readonly closing: string;
  readonly suffix: string;
};

// biome-ignore format: one line for each kind
const tokens = [
  'a', 'b', 'word', ' ', '  ', '    ', '\t', '\n', '\n\n', '\r\n', '\r', '0', '12', '.', ',', ';', '!', '?', '-', '+', '=',
  '*', '**', '_', '__', '~', '~~', '`', '``', '```', '```js\n', '||', '|', '[', ']', '](', '[[', ']]', '(', ')', '![',
  '<', '>', '<<<', '>>>', '</', '/>', '<|', '|>', '<think>', '</think>', '<b a', '{', '}', '"', "'", '\\', '\\n', '/', '//',
  '&', '&amp;', '#', '@', ':', '://', 'http://', 'www.', 'a@b.c', 'x.y', '%3A', 'bot1', 'Bearer ', 'sk-', '=\n', '---\n',
  '|-|\n', '> ', '- ', '1. ', '# ', '[x] ', '**/', '?', 'NO_REPLY', 'NO_', '[[reply_to', '<<<untrusted ', '[INST]',
  '\u001b[', '\u001b]', '\u009b', '\u009d', '\u0007', '\u200d', '\u200b', '\u202e', '\ufe0f', '\u{1f44d}', '\u{1f3f4}\u{e0067}', '\ud83d',
  'é', 'e\u0301', '好', '。', '“', '·', '…', '\u0000', '：',
] as const;

const few = fc.constantFrom(...tokens);
const run = (maxLength: number) => fc.array(few, { maxLength }).map((parts) => parts.join(''));

export const shapes: fc.Arbitrary<Shape> = fc.record({
  prefix: run(3),
  unit: fc.array(few, { minLength: 1, maxLength: 8 }).map((parts) => parts.join('')),
  closing: fc.oneof({ weight: 3, arbitrary: fc.constant('') }, { weight: 1, arbitrary: run(2) }),
  suffix: run(3),
});

/** Each of these has blocked some parser before. */
export const knownShapes: readonly Shape[] = [
  '_a*',
  'www.a_',
  'a\n=\n',
  '=\n',
  '1. a\n',
  '[a](',
  '*a _b',
  '> ',
  '[',
  '<',
  '<think>',
  '</think>',
  '`',
  '``a',
  '“``',
  '```\n',
  '\n',
  ' ',
  '\n ',
  '[[reply_to ',
  '<b ',
  '"\\',
  '\u001b]',
  '\u001b',
  '://',
  'a.',
  'a-',
  '</think a',
  '<think a ',
  'bot12345',
  'NO_REPLY ',
  'NO_REPLY\n',
  '![',
  '\u200d',
  '“',
  ':a@',
  '<<<untrusted ',
  '#',
  '~',
  '|',
  '* ',
  'https://',
  'e\u0301',
  '[TOOL_CALL]',
  'x',
  'word. ',
  '*',
  '"',
  '`<',
  '\n`',
  '``` \n',
  '\u{1f3f4}',
]
  .map((unit) => ({ prefix: '', unit, closing: '', suffix: '' }))
  .concat(
    { prefix: '', unit: '<tool', closing: '>', suffix: '' },
    { prefix: '', unit: ' ', closing: '', suffix: 'x' },
    { prefix: '', unit: '\u009d', closing: '', suffix: '\n' },
    { prefix: '</think>a', unit: '\r\n', closing: '', suffix: 'b' },
    { prefix: '+', unit: ' ', closing: '', suffix: '=\n' },
    { prefix: '```  {', unit: '````', closing: '', suffix: '\n\nNO_REPLY' },
  );

export function textOf({ prefix, unit, closing, suffix }: Shape, length: number): string {
  const count = Math.max(1, Math.floor(length / (unit.length + closing.length)));
  return prefix + unit.repeat(count) + closing.repeat(count) + suffix;
}
