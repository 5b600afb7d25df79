import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { growthOf } from '../../growth/measure.ts';
import { holds } from '../../support/holds.ts';
import { pageModule } from './page-module.ts';

const { readMarkdown } = await pageModule<{ readMarkdown(source: string): FormattedText }>('markdown.js');

const marked = (source: string) => {
  const { text, spans } = readMarkdown(source);
  return spans.map((span) => [span.kind, text.slice(span.start, span.start + span.length)]);
};

describe("the page's Markdown", () => {
  it('marks the syntax that it knows', () => {
    expect(marked('a **b *c* d** `e` ~~f~~')).toEqual([
      ['italic', 'c'],
      ['bold', 'b c d'],
      ['code', 'e'],
      ['strikethrough', 'f'],
    ]);
    expect(marked('```js\nlet a;\n```\n> q')).toEqual([
      ['code-block', 'let a;'],
      ['quote', 'q'],
    ]);
    expect(readMarkdown('see [this](https://example.org)').spans).toEqual([
      { kind: 'link', start: 4, length: 4, url: 'https://example.org' },
    ]);
  });

  it('leaves unknown syntax as it was written', () => {
    for (const text of [
      '2 * 3 * 4',
      'a ** b',
      'snake_case_name',
      '[x]',
      '[](y)',
      '`open',
      '****',
      '<b>x</b>',
    ]) {
      expect(readMarkdown(text)).toEqual({ text, spans: [] });
    }
  });

  it('marks only inside the text and loses no word', () => {
    holds(
      fc.property(
        fc.string({
          unit: fc.constantFrom('a', ' ', '*', '`', '_', '~', '[', ']', '(', ')', '\n', '>', '#', '-'),
        }),
        (source) => {
          const { text, spans } = readMarkdown(source);
          for (const { start, length } of spans) {
            expect(start).toBeGreaterThanOrEqual(0);
            expect(length).toBeGreaterThan(0);
            expect(start + length).toBeLessThanOrEqual(text.length);
          }
        },
      ),
      { interruptAfterTimeLimit: 1000, numRuns: 20_000 },
    );
  });

  it.each(['*', '**a', '[', '[a](', '`', '> ', '_*', '**a *b '])(
    'takes at most three times as long for twice the length of %j',
    (unit) => {
      const textOf = (length: number) => unit.repeat(length / unit.length);
      expect(growthOf({ run: readMarkdown, textOf }, 40_000).kind).not.toBe('steep');
    },
  );
});
