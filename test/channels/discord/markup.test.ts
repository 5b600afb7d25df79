import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import { toMarkdown } from '../../../channels/discord/markup.ts';
import type { PlainSpanKind, Span } from '../../../src/contracts/formatted-text.ts';
import { formatMarkdown } from '../../../src/replies/markdown.ts';
import { check } from '../../replies/reply-generators.ts';
import { rendered } from './rendered.ts';

/** What has a meaning to Discord's parser, alone or in combination, and ordinary words. */
const snippets = fc.constantFrom(
  ...['*', '**', '***', '_', '__', '___', '~', '~~', '|', '||', '`', '``', '```', '\\', '\\\\', '>', '>>> '],
  ...[
    '> ',
    '# ',
    '## ',
    '-# ',
    '- ',
    '1. ',
    '12. ',
    '+ ',
    '[',
    ']',
    '(',
    ')',
    '](',
    '<',
    '<@',
    '<#',
    '<:',
    '<t:',
  ],
  ...['@', '@everyone', '@here', '<@123456789012345678>', '<@&123456789012345678>', '<#123456789012345678>'],
  ...[
    '<:wave:123456789012345678>',
    '<t:1700000000:R>',
    '</help:123456789012345678>',
    '¯\\_(ツ)_/¯',
    ':smile:',
  ],
  ...['https://a.example/b', 'https://a.example/b_c_d', 'http://x.example/*y*)', 'https://', 'steam:'],
  ...['<https://a.example>', 'mail:to', 'snake_case', 'a', 'b1', 'word', 'é', '好的', '👍', '👨‍👩‍👧'],
  ...[' ', ' ', ' ', '  ', '\n', '\n\n', '.', ',', ':', '!', '?', '-', '='],
);
const texts = fc.array(snippets, { maxLength: 14 }).map((parts) => parts.join('').trim());

const styleKinds = ['bold', 'italic', 'underline', 'strikethrough', 'spoiler'] as const;

/** Spans of any kind, anywhere, overlapping in any way. */
const wildSpans = (text: string): fc.Arbitrary<readonly Span[]> => {
  const place = fc.nat({ max: Math.max(0, text.length - 1) });
  const plain = fc.record({
    kind: fc.constantFrom<PlainSpanKind>(...styleKinds, 'code', 'quote'),
    start: place,
    length: fc.integer({ min: 1, max: 20 }),
  });
  return fc.array(plain, { maxLength: 8 });
};
const wildTexts = texts.chain((text) => wildSpans(text).map((spans): FormattedText => ({ text, spans })));

/**
 * Returns the text without zero-width characters. Clients break lines where they like, so white space stays as it is.
 */
function shown(content: string): string {
  return rendered(content).text.replaceAll('\u200b', '');
}

describe('unformatted text', () => {
  it('renders unformatted text as it was written, whatever markup it resembles', () => {
    check(
      fc.property(texts, (text) => {
        const { text: read, spans } = rendered(toMarkdown(plainText(text)));
        expect(read).toBe(text);
        expect(spans).toEqual([]);
      }),
    );
  });

  it.each([
    ['a sentence, with numbers (1) and a-dash.', 'a sentence, with numbers (1) and a-dash.'],
    ['snake_case', 'snake\\_case'],
    ['2 < 3 | 4 ~ 5', '2 < 3 | 4 ~ 5'],
    ['see https://a.example/b_c_d?e=*f*.', 'see https://a.example/b_c_d?e=*f*.'],
    ['[1] and [2]', '[1] and [2]'],
    ['# no heading', '\\# no heading'],
    ['hey @everyone', 'hey \\@everyone'],
    ['<@123456789012345678>', '\\<@123456789012345678>'],
  ])('escapes no more than needed: %s', (text, content) => {
    expect(toMarkdown(plainText(text))).toBe(content);
  });
});

describe('formatted text', () => {
  it('renders formatted text as it was written, wherever its spans lie', () => {
    check(
      fc.property(wildTexts, (formatted) => {
        expect(shown(toMarkdown(formatted))).toBe(formatted.text);
      }),
    );
  });

  it('shows no style where there is none', { timeout: 300_000 }, () => {
    check(
      fc.property(wildTexts, ({ text, spans }) => {
        const asked = stylesPerCharacter({ text, spans });
        const read = rendered(toMarkdown({ text, spans }));
        if (read.text !== text) return; // It contains a zero-width separator: covered above.
        for (const [index, kinds] of stylesPerCharacter(read).entries()) {
          // Styles cover whole characters, and a quote includes its line break.
          if (/[\ud800-\udfff\n]/.test(text.charAt(index))) continue;
          for (const kind of kinds) expect(asked[index]).toContain(kind);
        }
      }),
      20_000,
    );
  });

  it('shows each style if words and spaces separate them', { timeout: 300_000 }, () => {
    check(
      fc.property(phrases, ({ text, spans }) => {
        expect(rendered(toMarkdown({ text, spans }))).toEqual({ text, spans });
      }),
    );
  });
});

/** Words, each with one style or none, and code, which may contain anything. */
const words = fc.constantFrom(
  'word',
  'snake_case',
  '*',
  'a*b',
  '||',
  '~~',
  'two words',
  '<@1>',
  '\\',
  '#',
  '`',
);
const phrase = fc.record({
  text: fc.oneof(words, fc.constantFrom('`', '``', '` `', '`a', 'b`', '**x**', '\\', '||')),
  kind: fc.constantFrom<PlainSpanKind | 'link' | undefined>(...styleKinds, 'code', 'link', undefined),
});
const phrases = fc.array(phrase, { minLength: 1, maxLength: 6 }).map((parts): FormattedText => {
  const spans: Span[] = [];
  let text = 'Well: ';
  for (const part of parts) {
    const range = { start: text.length, length: part.text.length };
    if (part.kind === 'link') spans.push({ kind: 'link', ...range, url: 'https://a.example/b_c' });
    else if (part.kind !== undefined) spans.push({ kind: part.kind, ...range });
    text += `${part.text} and `;
  }
  return { text: `${text}so on`, spans: spans.filter((span) => isSeparable(text, span)) };
});

/** Says whether the span needs no zero-width separator; those that do are covered by another test. */
function isSeparable(text: string, { kind, start, length }: Span): boolean {
  const covered = text.slice(start, start + length);
  if (kind === 'spoiler' || kind === 'strikethrough') return !/[|~]$/.test(covered);
  return kind !== 'code' || !covered.includes('``');
}

function stylesPerCharacter({ text, spans }: FormattedText): readonly ReadonlySet<string>[] {
  return Array.from({ length: text.length }, (_, index) => {
    const here = spans.filter(({ start, length }) => start <= index && index < start + length);
    return new Set(here.map(({ kind }) => kind));
  });
}

describe('links, quotes and code blocks', () => {
  const link = (label: string, url: string): FormattedText => ({
    text: `see ${label}, then go`,
    spans: [{ kind: 'link', start: 4, length: label.length, url }],
  });

  it('shows where each link leads, however many styles the text has', () => {
    const styles = Array.from(
      { length: 250 },
      (_, index) => ({ kind: 'code', start: index * 2, length: 1 }) as const,
    );
    const link = { kind: 'link', start: 500, length: 4, url: 'https://example.org/last' } as const;
    const written = toMarkdown({ text: `${'a '.repeat(250)}here`, spans: [...styles, link] });
    expect(written).toContain(link.url);
  });

  it('masks a link behind its label', () => {
    expect(toMarkdown(link('the docs', 'https://a.example/b(c)'))).toBe(
      'see [the docs](https://a.example/b%28c%29), then go',
    );
  });

  it.each([
    [
      'an address as its own label',
      'https://a.example/b',
      'https://a.example/b',
      'see https://a.example/b, then go',
    ],
    [
      'a label that is another address',
      'https://a.example',
      'https://a.example/b',
      'see https://a.example (https://a.example/b), then go',
    ],
    [
      'an address outside the web',
      'write to us',
      'mailto:us@a.example',
      'see write to us (mailto:us@a.example), then go',
    ],
    ['a mail address', 'us@a.example', 'mailto:us@a.example', 'see us@a.example, then go'],
    ['a label with half a bracket', 'a] b', 'https://a.example/b', 'see a] b (https://a.example/b), then go'],
  ])('shows the address of a link that cannot be masked: %s', (_, label, url, content) => {
    expect(toMarkdown(link(label, url))).toBe(content);
  });

  it('shows an address of more than 1,000 characters as text instead of a masked link', () => {
    const url = (length: number) => 'https://a.example/'.padEnd(length, 'b');
    const written = (length: number) => toMarkdown(formatMarkdown(`[x**y**\`z\`](${url(length)})`));
    expect(written(1_000)).toContain(`](${url(1_000)})`);
    const shown = written(1_001);
    expect(shown).not.toContain('](');
    expect(shown.split(url(1_001))).toHaveLength(2);
  });

  it('does not let an address swallow the markup after it', () => {
    const text = 'https://a.example/bold';
    const formatted = { text, spans: [{ kind: 'bold', start: 18, length: 4 }] } as const;
    expect(rendered(toMarkdown(formatted)).text).toBe(text);
  });

  it('quotes whole lines together with the styles inside them', () => {
    const text = 'he said:\nfirst *line*\n\ncode()\nand I';
    const spans: readonly Span[] = [
      { kind: 'quote', start: 9, length: 20 },
      { kind: 'bold', start: 9, length: 5 },
      { kind: 'code-block', start: 23, length: 6, language: 'js' },
    ];
    expect(toMarkdown({ text, spans })).toBe(
      'he said:\n> **first** \\*line\\*\n> \n> ```js\n> code()\n> ```\nand I',
    );
    expect(rendered(toMarkdown({ text, spans })).spans.map(({ kind }) => kind)).toEqual([
      'quote',
      'bold',
      'code-block',
    ]);
  });

  it('keeps a code block as it is, including fences inside it', () => {
    const code = '  if (a) {\n    *b*; // ```\n  }';
    const formatted = { text: code, spans: [{ kind: 'code-block', start: 0, length: code.length }] } as const;
    const read = rendered(toMarkdown(formatted));
    expect(read.text.replaceAll('\u200b', '')).toBe(code);
    expect(read.spans.map(({ kind }) => kind)).toEqual(['code-block']);
  });

  it('keeps two adjacent code spans apart', () => {
    const formatted = {
      text: 'ab',
      spans: [
        { kind: 'code', start: 0, length: 1 },
        { kind: 'code', start: 1, length: 1 },
      ],
    } as const;
    const { text, spans } = rendered(toMarkdown(formatted));
    expect(text).toBe('a\u200bb');
    expect(spans.map(({ kind }) => kind)).toEqual(['code', 'code']);
  });
});
