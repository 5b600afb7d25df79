import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatMarkdown } from '../../src/replies/markdown.ts';
import { check } from './reply-generators.ts';
import { expectLawfulSpans } from './span-rules.ts';

/** Returns the spans as `kind:text`, links with their target. */
function spansOf(markdown: string): string[] {
  const { text, spans } = formatMarkdown(markdown);
  return spans.map((span) => {
    const extra =
      span.kind === 'link' ? `→${span.url}` : span.kind === 'code-block' ? `(${span.language ?? ''})` : '';
    return `${span.kind}${extra}:${text.slice(span.start, span.start + span.length)}`;
  });
}

describe('Markdown formatting', () => {
  it.each([
    [
      '**a** *b* ~~c~~ `d` ||e||',
      'a b c d e',
      ['bold:a', 'italic:b', 'strikethrough:c', 'code:d', 'spoiler:e'],
    ],
    ['***x***', 'x', ['italic:x', 'bold:x']],
    ['# Title\n\ntext', 'Title\n\ntext', ['bold:Title']],
    ['# **Title**', 'Title', ['bold:Title']],
    ['**a `b` c**', 'a b c', ['bold:a ', 'code:b', 'bold: c']],
    ['```ts\nlet x = 1;\n  y\n```', 'let x = 1;\n  y', ['code-block(ts):let x = 1;\n  y']],
    ['[a](https://x.example/y)', 'a', ['link→https://x.example/y:a']],
    ['[**a**](https://x.example)', 'a', ['link→https://x.example:a', 'bold:a']],
    ['[`a`](https://x.example)', 'a', ['link→https://x.example:a']],
    [
      'https://x.example/a_b_c',
      'https://x.example/a_b_c',
      ['link→https://x.example/a_b_c:https://x.example/a_b_c'],
    ],
    ['<https://x.example>', 'https://x.example', ['link→https://x.example:https://x.example']],
    ['![cat](https://x.example/c.png)', 'cat', ['link→https://x.example/c.png:cat']],
    ['- a\n- b\n  - c\n    - d', '• a\n• b\n  • c\n    • d', []],
    ['3. a\n4. b', '3. a\n4. b', []],
    ['1. a\n   - b\n2. c', '1. a\n  • b\n2. c', []],
    ['- [x] a\n- [ ] b', '☑ a\n☐ b', []],
    ['> a **b**\n> c', 'a b\nc', ['quote:a b\nc', 'bold:b']],
    ['> > a\n>\n> b', 'a\n\nb', ['quote:a\n\nb']],
    ['> ```\n> x\n> ```', 'x', ['quote:x', 'code-block():x']],
    ['a  \nb', 'a\nb', []],
    ['a\nb\n\nc', 'a\nb\n\nc', []],
    ['a\n\n---\n\nb', 'a\n\n———\n\nb', []],
    ['<b>x</b> & <script>', '<b>x</b> & <script>', []],
    ['<div>\n**x**\n</div>', '<div>\nx\n</div>', ['bold:x']],
    ['5 * 3 * 2 and a_b_c and 2 ~ 3', '5 * 3 * 2 and a_b_c and 2 ~ 3', []],
    ['a || b || c', 'a || b || c', []],
    ['\\*not bold\\*', '*not bold*', []],
    ['[1]: https://x.example', '[1]: https://x.example', ['link→https://x.example:https://x.example']],
    ['text[^1]\n\n[^1]: note', 'text[^1]\n\n[^1]: note', []],
    ['**unclosed', '**unclosed', []],
    ['', '', []],
  ])('turns %j into text and spans', (markdown, text, spans) => {
    expect(formatMarkdown(markdown).text).toBe(text);
    expect(spansOf(markdown)).toEqual(spans);
  });

  it('draws a table as aligned monospace text, and keeps its cells for the page', () => {
    const markdown = '| Name | Size |\n|:--|--:|\n| **a** | 1 |\n| 好的 | 200 |';
    const cell = (text: string) => ({ text, spans: [] });
    const bold = { text: 'a', spans: [{ kind: 'bold', start: 0, length: 1 }] };
    const rows = [
      [cell('Name'), cell('Size')],
      [bold, cell('1')],
      [cell('好的'), cell('200')],
    ];
    const table = { align: ['left', 'right'], rows, notes: 0 };
    expect(formatMarkdown(markdown)).toEqual({
      text: 'Name  Size\n────  ────\na        1\n好的   200',
      spans: [{ kind: 'code-block', start: 0, length: 41, table }],
    });
  });

  // After reports on skoropadas/telegramify-markdown, hummingbot/condor and telegramdesktop.
  it.each([
    ['[notes](https://x.example/a)', 'notes [1]', '[1] https://x.example/a'],
    ['**[notes](https://x.example/a)** and *more*', 'notes [1] and more', '[1] https://x.example/a'],
    ['https://x.example/a/long/path/to/it', 'x.example [1]', '[1] https://x.example/a/long/path/to/it'],
    ['https://x.example/a', 'https://x.example/a', undefined],
    ['<a@b.example>', 'a@b.example', undefined],
    ['![cat](https://x.example/c.png)', 'cat [1]', '[1] https://x.example/c.png'],
    ['[you](tg://user?id=1)', 'you (tg://user?id=1)', undefined],
    ['5<br>6<BR />7', '5\n6\n7', undefined],
    ['`<br>`', '<br>', undefined],
  ])('keeps the address and the lines of %j in a table cell', (cell, shown, note) => {
    const { text, spans } = formatMarkdown(`| T |\n|---|\n| ${cell} |`);
    const [, , ...rest] = text.split('\n');
    expect(rest.join('\n')).toBe(note === undefined ? shown : `${shown}\n${note}`);
    const links = spans.flatMap((span) => (span.kind === 'link' ? [`[1] ${span.url}`] : []));
    expect(links).toEqual(note === undefined ? [] : [note]);
  });

  it('lists an address once if several cells link to it', () => {
    const [a, b] = ['https://x.example/a', 'https://x.example/b'];
    const { text } = formatMarkdown(`| T |\n|---|\n| [1st](${a}) |\n| [2nd](${b}) [3rd](${a}) |`);
    expect(text.split('\n').slice(2)).toEqual(['1st [1]', '2nd [2] 3rd [1]', `[1] ${a}`, `[2] ${b}`]);
  });

  it.each([
    ['[you](tg://user?id=1)', 'you (tg://user?id=1)'],
    ['[x](javascript:alert(1))', 'x (javascript:alert(1))'],
    ['[https://bank.example](https://evil.example)', 'https://bank.example (https://evil.example)'],
    ['[bank.example](https://evil.example/bank.example)', 'bank.example (https://evil.example/bank.example)'],
    ['[x](https://bank.example@evil.example)', 'x (https://bank.example@evil.example)'],
    ['[file](./notes.md)', 'file (./notes.md)'],
  ])('shows where %j would lead instead of linking it', (markdown, text) => {
    const formatted = formatMarkdown(markdown);
    expect(formatted.text).toBe(text);
    expect(
      formatted.spans.filter(
        (span) =>
          span.kind === 'link' &&
          !formatted.text.slice(span.start, span.start + span.length).startsWith('https://'),
      ),
    ).toEqual([]);
  });

  it.each([
    '[bank.example](https://www.bank.example/login)',
    '[README.md](https://x.example/README.md)',
    '[mail](mailto:a@b.example)',
  ])('links the honest %j', (markdown) => {
    expect(formatMarkdown(markdown).spans).toHaveLength(1);
  });

  const pieces = fc.constantFrom(
    '*',
    '**',
    '_',
    '__',
    '~~',
    '`',
    '```',
    '```js\n',
    '~~~',
    '||',
    '\n',
    '\n\n',
    '  \n',
    '> ',
    '- ',
    '1. ',
    '  ',
    '    ',
    '# ',
    '## ',
    '| a | b |\n|---|---|\n| 1 | 2 |\n',
    '|',
    '[',
    '](',
    ')',
    '](https://x.example)',
    '![',
    '<',
    '>',
    '<b>',
    '&amp;',
    '\\',
    '- [ ] ',
    'word',
    'a b',
    '👍',
    '👨‍👩‍👧',
    '好',
    'https://x.example/p',
    'www.x.example',
    'a@b.example',
    '@everyone',
    '---\n',
    '===\n',
    '[^1]',
    ': ',
    '.',
    '\t',
    '\u202e',
  );
  const markdowns = fc.array(pieces, { maxLength: 24 }).map((parts) => parts.join(''));

  it('never throws, and produces valid spans, whatever the model writes', () => {
    check(
      fc.property(markdowns, (markdown) => expectLawfulSpans(formatMarkdown(markdown))),
      30_000,
    );
  });

  it('loses no word and no emoji of a text', () => {
    check(
      fc.property(markdowns, (markdown) => {
        const formatted = formatMarkdown(markdown);
        const languages = formatted.spans.map((span) => (span.kind === 'code-block' ? span.language : ''));
        const text = [formatted.text, ...languages].join('\n');
        for (const word of ['word', '👍', '👨‍👩‍👧', '好', '@everyone']) {
          expect(text.split(word).length).toBeGreaterThanOrEqual(markdown.split(word).length);
        }
      }),
      30_000,
    );
  });

  it('returns a text without markup unchanged', () => {
    const words = fc.array(
      fc.constantFrom(
        'It',
        'is',
        'ten',
        'o’clock.',
        '\n',
        '\n\n',
        '(yes)',
        '3.5',
        'e.g.',
        '👍',
        'a-b',
        '“q”',
      ),
      { maxLength: 30 },
    );
    check(
      fc.property(words, (list) => {
        const text = list
          .join(' ')
          .replace(/ *\n */g, '\n')
          .replace(/\n{3,}/g, '\n\n')
          .trim();
        if (/^(?:[-+]|\d+[.)])\s/m.test(text)) return;
        expect(formatMarkdown(text)).toEqual({ text, spans: [] });
      }),
    );
  });

  it('produces valid spans for hostile nesting', () => {
    for (const piece of [
      '> ',
      '[',
      '*a ',
      '**',
      '- ',
      '`',
      '![',
      '<',
      '|',
      '_a',
      '~~',
      '||',
      '(',
      '[a](',
      '*_',
      '1. ',
      '\n- ',
      '\\',
      '&',
    ]) {
      const markdown = piece.repeat(Math.floor(2_000 / piece.length));
      expectLawfulSpans(formatMarkdown(markdown));
    }
  });
});
