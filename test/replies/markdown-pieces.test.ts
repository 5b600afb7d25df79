import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blocksOf } from '../../src/replies/markdown.ts';
import { piecesOf } from '../../src/replies/markdown-pieces.ts';
import { check } from './reply-generators.ts';

/** Lines that begin, continue or end blocks, and such that only look like it. */
const lines = fc.constantFrom(
  ...[
    '',
    '',
    '',
    '',
    ' ',
    'word',
    'word',
    'two words',
    ' one',
    '  two',
    '   three',
    '    four',
    '      six',
    '\ttab',
  ],
  ...[
    '```',
    '```',
    '```js',
    '````',
    '~~~',
    '~~~ x',
    ' ```',
    '  ```',
    '   ```',
    '    ```',
    '``` a`b',
    '```x```',
  ],
  ...[
    '- a',
    '- b',
    '* a',
    '*b*',
    '+ a',
    '-',
    '-  a',
    '-     code',
    '-\ta',
    '  - a',
    ' - a',
    '   - a',
    '    - a',
  ],
  ...[
    '1. a',
    '2. b',
    '7) c',
    '10. d',
    '1.',
    '- ```',
    '1. ```js',
    '- # h',
    '- > q',
    '- - a',
    '> q',
    '> ```',
    '> - a',
  ],
  ...[
    '# h',
    '## h',
    '#h',
    ' # h',
    '---',
    '- - -',
    '***',
    '===',
    '_ _ _',
    '| a | b |',
    '|---|---|',
    '| 1 | 2 |',
  ],
  ...[
    '<b>',
    '[a]: https://x.example',
    '**open',
    'close**',
    'a\r',
    'a\rb',
    '\u00a0',
    '\u00a0```',
    '\\',
    '$$',
    '`',
    '`x',
  ],
);
const texts = fc.array(lines, { maxLength: 14 }).map((all) => all.join('\n'));

/**
 * Blocks without their positions, which count from the beginning of a piece. Of the empty lines at the end of code that
 * only the end of its list closes, the parser keeps some or none.
 */
const bare = (blocks: Iterable<{ readonly type: string }>) =>
  JSON.parse(
    JSON.stringify([...blocks], (_, node) => {
      if (node?.type === 'code') return { ...node, value: node.value.trimEnd(), position: undefined };
      return node?.type === undefined ? node : { ...node, position: undefined };
    }),
  );

const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== '');

function expectSameBlocks(text: string): void {
  expect(bare(blocksOf(text, 0))).toEqual(bare(blocksOf(text, Number.POSITIVE_INFINITY)));
}

describe('the pieces of a Markdown text', () => {
  it('cuts a text without changing its blocks', () => {
    check(
      fc.property(texts, (text) => {
        expect(wordsOf([...piecesOf(text, 0)].join('\n'))).toEqual(wordsOf(text));
        expectSameBlocks(text);
      }),
      50_000,
    );
  });

  it.each([
    '1. a\n   ```\n   x\n\ny\n\n```\nb\n\nc\n```',
    '10. a\n   ```\nx\n\ny\n   ```\n\nz',
    '- a\nlazy\n  ```\nx\n\ny\n  ```\n\nz',
    'a\n2. b\n   ```\nx\n\ny\n   ```\n\nz',
    'a\n10. d\n7) c\n   ```\n\n```',
    '-\n\n  ```\nx\n\ny\n  ```\n\nz',
    '- a\n> q\n  ```\nx\n\ny\n  ```\n\nz',
  ])('cuts a text without changing its blocks where a fence meets a list: %j', expectSameBlocks);

  it.each([10, 40])('cuts short pieces however long the answer is: %i sections', (count) => {
    const answer = Array.from({ length: count }, (_, index) => aSection(index)).join('');
    const lengths = [...piecesOf(answer)].map(({ length }) => length);
    expect(lengths.length).toBeGreaterThan(answer.length / 4_000);
    expect(Math.max(...lengths)).toBeLessThan(2_500);
  });
});

/** A section as models write it: lists with code in their items, code with empty lines, a table. */
function aSection(index: number): string {
  return `## Step ${index}

Some **bold** words about *topic ${index}*, with \`code\` and [a link](https://x.example/${index}).

1. First:
   \`\`\`bash
   npm install

   npm start
   \`\`\`
2. Then **this**:

   - one
   - two

\`\`\`ts
const x = ${index};

# not a heading
\`\`\`

| a | b |
|---|---|
| 1 | ${index} |

---

`;
}
