import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatMarkdown } from '../../../src/replies/markdown.ts';
import { growthOf } from '../../growth/measure.ts';
import { holds } from '../../support/holds.ts';
import { pageModule } from './page-module.ts';

type Range = { readonly start: number; readonly end: number };
type Item = { readonly lines: readonly Range[]; readonly check?: boolean; readonly lists: readonly List[] };
type List = {
  readonly kind: 'list';
  readonly isOrdered: boolean;
  readonly first: number;
  readonly items: readonly Item[];
};
type Block = List | ({ readonly kind: 'paragraph' } & Range);

const { readBlocks, readTable } = await pageModule<{
  readBlocks(text: string, from: number, to: number): readonly Block[];
  readTable(code: string): readonly (readonly string[])[] | undefined;
}>('text-blocks.js');

/** Returns what is shown, as nested arrays: text for a paragraph, a mark and its items for a list. */
function shown(text: string): unknown {
  const ofList = ({ isOrdered, first, items }: List): unknown => [
    isOrdered ? first : '•',
    ...items.map(({ lines, check, lists }) => {
      const words = lines.map(({ start, end }) => text.slice(start, end)).join('/');
      const marked = check === undefined ? words : `[${check ? 'x' : ' '}] ${words}`;
      return lists.length === 0 ? marked : [marked, ...lists.map(ofList)];
    }),
  ];
  return readBlocks(text, 0, text.length).map((block) =>
    block.kind === 'list' ? ofList(block) : text.slice(block.start, block.end),
  );
}

const asSent = (markdown: string) => formatMarkdown(markdown).text;

describe("the page's lists and tables", () => {
  it('finds the lists that the model wrote', () => {
    const text = asSent(
      'Do:\n\n- a\n- b\n  1. b1\n  2. b2\n- c\n\nthen\n\n3. x\n4. y\n\n- [x] done\n- [ ] open',
    );
    expect(shown(text)).toEqual([
      'Do:',
      ['•', 'a', ['b', [1, 'b1', 'b2']], 'c'],
      'then',
      [3, 'x', 'y'],
      ['•', '[x] done', '[ ] open'],
    ]);
    expect(shown(asSent('- first\n  more of it\n- second'))).toEqual([['•', 'first/more of it', 'second']]);
  });

  it("finds the model's table cells, even with wide letters and empty cells", () => {
    const { text, spans } = formatMarkdown('| a | 漢字 |\n|---|---:|\n| one two | 1 |\n|  | 22 |');
    const [{ start = 0, length = 0 } = {}] = spans;
    expect(readTable(text.slice(start, start + length))).toEqual([
      ['a', '漢字'],
      ['one two', '1'],
      ['', '22'],
    ]);
    expect(readTable('let a = 1;\nlet b;')).toBeUndefined();
  });

  it('loses no word of the text', () => {
    const unit = fc.constantFrom('a', ' ', '  ', '• ', '☐ ', '1. ', '\n', '12');
    holds(
      fc.property(fc.string({ unit }), (text) => {
        const words: string[] = [];
        const take = ({ start, end }: Range) => void words.push(text.slice(start, end));
        const takeList = ({ items }: List): void => {
          for (const { lines, lists } of items) {
            for (const line of lines) take(line);
            for (const list of lists) takeList(list);
          }
        };
        for (const block of readBlocks(text, 0, text.length)) {
          if (block.kind === 'list') takeList(block);
          else take(block);
        }
        const unmarked = text.replace(/^ *(?:[•☐]|\d{1,9}\.) /gm, '');
        expect(words.join('').replace(/\s/g, '')).toHaveLength(unmarked.replace(/\s/g, '').length);
      }),
      { interruptAfterTimeLimit: 1000, numRuns: 20_000 },
    );
  });

  it.each(['• ', '• a\n', '  • a\n', 'a\n', '\n', '1. \n'])(
    'takes at most three times as long for twice the length of %j',
    (unit) => {
      const textOf = (length: number) => unit.repeat(length / unit.length);
      const read = (text: string) => readBlocks(text, 0, text.length);
      expect(growthOf({ run: read, textOf }, 80_000).kind).not.toBe('steep');
    },
  );
});
