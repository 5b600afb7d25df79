import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { toStyledText } from '../../../channels/signal/styled-text.ts';
import type { Span } from '../../../src/contracts/formatted-text.ts';
import { readStyledText } from '../../platforms/signal/styled-text.ts';
import type { TextStyle } from '../../platforms/signal/types.ts';
import { isLong } from '../../support/long-run.ts';

const runs = { numRuns: isLong ? 100_000 : 5000 };
const releases = ['0.100', 'head'] as const;

const spanStyles: Partial<Record<Span['kind'], TextStyle>> = {
  bold: 'BOLD',
  italic: 'ITALIC',
  strikethrough: 'STRIKETHROUGH',
  spoiler: 'SPOILER',
  code: 'MONOSPACE',
};
const kinds = Object.keys(spanStyles) as (keyof typeof spanStyles)[];

/** Texts that mostly consist of marker characters. */
const aText = fc
  .array(
    fc.constantFrom('*', '**', '***', '~', '`', '|', '||', '\\', '_', 'a', 'b ', '\n', '👋', 'é', '\ufffc'),
    {
      maxLength: 24,
    },
  )
  .map((pieces) => pieces.join(''));

const aFormattedText: fc.Arbitrary<FormattedText> = aText.chain((text) =>
  fc
    .array(
      fc.record({
        kind: fc.constantFrom(...kinds),
        start: fc.nat(text.length),
        length: fc.nat(text.length),
      }),
      { maxLength: 5 },
    )
    .map((spans) => ({ text, spans: spans as Span[] })),
);

function read({ message, textMode }: ReturnType<typeof toStyledText>, release: (typeof releases)[number]) {
  return textMode === 'normal' ? { text: message, styles: [], lost: [] } : readStyledText(message, release);
}

/** Returns the styles of each code unit, sorted. */
function stylesAt(styles: readonly { style: TextStyle; start: number; length: number }[], index: number) {
  const covering = styles.filter(({ start, length }) => index >= start && index < start + length);
  return [...new Set(covering.map(({ style }) => style))].sort();
}

describe('markers', { timeout: 180_000 }, () => {
  it('keeps any text intact, and no marker is swallowed', () => {
    fc.assert(
      fc.property(aFormattedText, (formatted) => {
        for (const release of releases) {
          const { text, lost } = read(toStyledText(formatted), release);
          expect(text).toBe(formatted.text);
          expect(lost).toEqual([]);
        }
      }),
      runs,
    );
  });

  it('shows only styles that were asked for, the same in every release', () => {
    fc.assert(
      fc.property(aFormattedText, (formatted) => {
        const asked = formatted.spans.map((span) => ({ ...span, style: spanStyles[span.kind] ?? 'BOLD' }));
        const [older, newer] = releases.map((release) => read(toStyledText(formatted), release).styles);
        for (let index = 0; index < formatted.text.length; index += 1) {
          // A backslash, star or bar gets the style of what follows it.
          if (/[\\*|]/.test(formatted.text[index] ?? '')) continue;
          const shown = stylesAt(older ?? [], index);
          expect(stylesAt(newer ?? [], index)).toEqual(shown);
          const pair = index > 0 && /[\udc00-\udfff]/.test(formatted.text[index] ?? '') ? index - 1 : index;
          for (const style of shown) expect(stylesAt(asked, pair)).toContain(style);
        }
      }),
      runs,
    );
  });

  it('shows exactly the given spans if there are no markers and bold and italic are apart', () => {
    const words = fc.array(fc.constantFrom('ab', 'c d', '👋', '_', 'é\n'), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(words, fc.constantFrom(...kinds), fc.nat(), fc.nat(), (pieces, kind, from, to) => {
        const text = pieces.join('');
        const edge = (position: number) => pieces.slice(0, position % (pieces.length + 1)).join('').length;
        const [start, end] = [edge(from), edge(to)].sort((a, b) => a - b) as [number, number];
        const spans = end > start ? [{ kind, start, length: end - start } as Span] : [];
        for (const release of releases) {
          const { styles } = read(toStyledText({ text, spans }), release);
          expect(styles).toEqual(
            spans.map((span) => ({ style: spanStyles[kind], start: span.start, length: span.length })),
          );
        }
      }),
      runs,
    );
  });
});

const shown = (formatted: FormattedText) => {
  const styled = toStyledText(formatted);
  expect(read(styled, 'head')).toEqual(read(styled, '0.100'));
  return read(styled, 'head');
};

describe('texts', () => {
  it('sends a text without spans unchanged, in normal mode', () => {
    const text = '2 * 3, ~/home, `x`, ||y||, \\*';
    expect(toStyledText({ text, spans: [] })).toEqual({ message: text, textMode: 'normal' });
  });

  it('keeps stars beside a style', () => {
    const text = '2 * 3 = six';
    expect(toStyledText({ text, spans: [{ kind: 'bold', start: 8, length: 3 }] }).message).toBe(
      '2 \\* 3 = **six**',
    );
  });

  it('shows where a link leads, unless its label says so', () => {
    const link = (label: string, url: string): FormattedText => ({
      text: `see ${label}.`,
      spans: [
        { kind: 'link', start: 4, length: label.length, url },
        { kind: 'bold', start: 4, length: label.length + 1 },
      ],
    });
    expect(shown(link('here', 'https://example.org/a')).text).toBe('see here (https://example.org/a).');
    expect(shown(link('here', 'https://example.org/a')).styles).toEqual([
      { style: 'BOLD', start: 4, length: 29 },
    ]);
    expect(shown(link('https://example.org', 'https://example.org/')).text).toBe('see https://example.org.');
    expect(shown(link('Ada', 'tg://user?id=1')).text).toBe('see Ada.');
  });

  it('shows where each link leads, however many styles the text has', () => {
    const styles = Array.from(
      { length: 400 },
      (_, index) => ({ kind: 'code', start: index * 2, length: 1 }) as const,
    );
    const url = 'https://example.org/last';
    const text = `${'a '.repeat(400)}here`;
    const message = toStyledText({
      text,
      spans: [...styles, { kind: 'link', start: 800, length: 4, url }],
    }).message;
    expect(message).toContain(`here (${url})`);
  });

  it('marks the lines of a quote and keeps the styles in it', () => {
    const text = 'she said\none\ntwo\nand left';
    const spans: Span[] = [
      { kind: 'quote', start: 9, length: 7 },
      { kind: 'italic', start: 13, length: 3 },
    ];
    expect(shown({ text, spans })).toMatchObject({
      text: 'she said\n> one\n> two\nand left',
      styles: [{ style: 'ITALIC', start: 17, length: 3 }],
    });
  });

  it('drops italic where it meets bold, because three stars are ambiguous', () => {
    const text = 'ab cd';
    const both: Span[] = [
      { kind: 'bold', start: 0, length: 5 },
      { kind: 'italic', start: 0, length: 2 },
    ];
    expect(shown({ text, spans: both }).styles).toEqual([{ style: 'BOLD', start: 0, length: 5 }]);
    const touching: Span[] = [
      { kind: 'bold', start: 0, length: 2 },
      { kind: 'italic', start: 2, length: 3 },
    ];
    expect(shown({ text, spans: touching }).styles).toEqual([{ style: 'BOLD', start: 0, length: 2 }]);
  });
});
