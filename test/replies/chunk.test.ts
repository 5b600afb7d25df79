import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import type { Span } from '../../src/contracts/formatted-text.ts';
import { chunkFormatted } from '../../src/replies/chunk.ts';
import { formatMarkdown } from '../../src/replies/markdown.ts';
import { check } from './reply-generators.ts';
import { expectLawfulSpans } from './span-rules.ts';

const textsOf = (chunks: readonly FormattedText[]) => chunks.map((chunk) => chunk.text);
const cut = (text: string, maxLength: number) => textsOf(chunkFormatted(plainText(text), { maxLength }));
const code = (text: string, start: number, length: number): FormattedText => ({
  text,
  spans: [{ kind: 'code-block', start, length, language: 'ts' }],
});

describe('chunks of a formatted text', () => {
  it.each([
    ['one paragraph.\n\nanother one', 20, ['one paragraph.', 'another one']],
    ['a line\nand another\nthird', 20, ['a line\nand another', 'third']],
    ['First one. Second one. Third', 24, ['First one. Second one.', 'Third']],
    ['Is it? “Yes.” He said', 15, ['Is it? “Yes.”', 'He said']],
    ['one two three four', 10, ['one two', 'three four']],
    ['abcdefghijkl', 5, ['abcde', 'fghij', 'kl']],
    ['a\n\n\n\n\nb', 3, ['a', 'b']],
    ['• a\n  • b\n  • c', 8, ['• a', '  • b', '  • c']],
    ['exact', 5, ['exact']],
    ['12345 6789', 5, ['12345', '6789']],
    ['', 5, []],
    ['   \n ', 3, []],
  ])('cuts %j at %i where a reader would', (text, maxLength, expected) => {
    expect(cut(text, maxLength)).toEqual(expected);
  });

  it('keeps the cells of a table for the page only if the table is whole', () => {
    const rows = ['| a |', '|---|', ...Array.from({ length: 8 }, (_, row) => `| row ${row} |`)].join('\n');
    const drawn = (maxLength: number) =>
      chunkFormatted(formatMarkdown(rows), { maxLength }).map(({ spans }) =>
        spans.map((span) => span.kind === 'code-block' && span.table !== undefined),
      );
    expect(drawn(500)).toEqual([[true]]);
    expect(drawn(40)).toEqual([[false], [false]]);
  });

  it('prefers a paragraph to a line, a line to a sentence, a sentence to a word', () => {
    const text = 'Aaaa bbbb.\n\nCccc dddd.\nEeee ffff. Gggg hhhh';
    expect(cut(text, 40)[0]).toBe('Aaaa bbbb.');
    expect(cut(text.slice(12), 28)[0]).toBe('Cccc dddd.');
    expect(cut(text.slice(23), 18)[0]).toBe('Eeee ffff.');
  });

  it("doesn't make a tiny message for the sake of a paragraph", () => {
    expect(cut(`Hi.\n\n${'word '.repeat(30)}`, 100)[0]?.length).toBeGreaterThan(25);
  });

  it('moves a code block that fits into one message to the next one', () => {
    const chunks = chunkFormatted(code(`Look at this:\n\n${'x = 1;\n'.repeat(4)}`, 15, 28), {
      maxLength: 30,
    });
    expect(textsOf(chunks)[0]).toBe('Look at this:');
    expect(chunks[1]?.spans).toEqual([{ kind: 'code-block', start: 0, length: 28, language: 'ts' }]);
  });

  it('closes and reopens a code block that is too long, with its language, at a line', () => {
    const chunks = chunkFormatted(code('  a();\n\n  b();\n  c();', 0, 21), { maxLength: 9 });
    expect(textsOf(chunks)).toEqual(['  a();\n', '  b();', '  c();']);
    for (const chunk of chunks) {
      expect(chunk.spans).toEqual([
        { kind: 'code-block', start: 0, length: chunk.text.length, language: 'ts' },
      ]);
    }
  });

  it.each(['👨‍👩‍👧‍👦', '👩🏽‍💻', '🇩🇪', 'é', '각', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '❤️‍🔥'])('never cuts through %j', (cluster) => {
    for (let maxLength = cluster.length; maxLength < cluster.length * 3; maxLength += 1) {
      for (const text of cut(cluster.repeat(8), maxLength)) expect(text.length % cluster.length).toBe(0);
    }
  });

  it('keeps surrogate pairs whole if one character is longer than a message', () => {
    for (const text of cut(`👨‍👩‍👧‍👦${'\u0301'.repeat(50)}`, 4)) expect(text.isWellFormed()).toBe(true);
  });

  const pieces = fc.constantFrom(
    'word',
    'a',
    ' ',
    '  ',
    '\n',
    '\n\n',
    '. ',
    '! ',
    '。',
    '👍',
    '👨‍👩‍👧',
    '🇩🇪',
    '**b c**',
    '`x y`',
    '\n```ts\nlet x = 1;\n\n  let y;\n```\n',
    '\n> quote me\n\n',
    '\n- item\n',
    '[a b](https://x.example)',
    'longerwordwithoutspaces',
  );
  const answers = fc
    .array(pieces, { minLength: 1, maxLength: 60 })
    .map((parts) => formatMarkdown(parts.join('')));

  it('loses only white space at the cuts, and keeps each piece within the limit', () => {
    check(
      fc.property(answers, fc.integer({ min: 12, max: 120 }), (formatted, maxLength) => {
        let at = 0;
        for (const chunk of chunkFormatted(formatted, { maxLength })) {
          expect(chunk.text.length).toBeLessThanOrEqual(maxLength);
          expect(chunk.text.trim()).not.toBe('');
          expect(chunk.text.isWellFormed()).toBe(true);
          const found = formatted.text.indexOf(chunk.text, at);
          expect(found).toBeGreaterThanOrEqual(at);
          expect(formatted.text.slice(at, found).trim()).toBe('');
          expectSameMarks(formatted, chunk, found);
          at = found + chunk.text.length;
        }
        expect(formatted.text.slice(at).trim()).toBe('');
      }),
      20_000,
    );
  });

  it('keeps every piece within the limit if the native form is longer than the text', () => {
    /** As in Markdown: two more characters at either end of a span, and an escape before every special character. */
    const nativeLength = ({ text, spans }: FormattedText) =>
      text.length + 4 * spans.length + text.replace(/\w/g, '').length;
    check(
      fc.property(answers, fc.integer({ min: 60, max: 200 }), (formatted, maxLength) => {
        const chunks = chunkFormatted(formatted, { maxLength, nativeLength });
        for (const chunk of chunks) expect(nativeLength(chunk)).toBeLessThanOrEqual(maxLength);
        const joined = chunks.map(({ text }) => text).join('');
        expect(joined.replace(/\s/g, '')).toBe(formatted.text.replace(/\s/g, ''));
      }),
      20_000,
    );
  });

  it('keeps spans valid in every piece', () => {
    check(
      fc.property(answers, fc.integer({ min: 12, max: 120 }), (formatted, maxLength) => {
        for (const chunk of chunkFormatted(formatted, { maxLength })) expectLawfulSpans(chunk);
      }),
      20_000,
    );
  });
});

/** Each character of the chunk has exactly the marks that it had in the original text. */
function expectSameMarks(whole: FormattedText, chunk: FormattedText, offset: number): void {
  for (let index = 0; index < chunk.text.length; index += 1) {
    const inChunk = marksAt(chunk.spans, index);
    const inWhole = marksAt(whole.spans, offset + index);
    if (inChunk !== inWhole) expect({ index, marks: inChunk }).toEqual({ index, marks: inWhole });
  }
}

function marksAt(spans: readonly Span[], index: number): string {
  return spans
    .filter((span) => span.start <= index && index < span.start + span.length)
    .map((span) => JSON.stringify({ ...span, start: 0, length: 0 }))
    .join();
}
