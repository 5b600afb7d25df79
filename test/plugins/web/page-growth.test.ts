import { describe, expect, it } from 'vitest';
import { htmlToMarkdown } from '../../../plugins/web/html-to-markdown.ts';
import { growthOf } from '../../growth/measure.ts';
import { isLong } from '../../support/long-run.ts';

/** Pieces to repeat for a page of any length. */
const units = [
  ...['<p>Some words <a href="/x">here</a> and there.</p>', 'word<br>', '<a href="/x">y</a> ', 'a word '],
  ...['<div>x', '<b>x', '<ul><li>x', '<blockquote>x', '<div><p>one, two, three</p>', '<table><tr><td>a'],
  ...[
    '<',
    '<html',
    '<body',
    '<!doctype',
    '<!--',
    '<script>x</script>',
    '<p hidden>x',
    '<title>x',
    '<base href="x">',
  ],
  ...[
    '<tr><td>a<td>b',
    '<td>a',
    '&amp;&#x41;',
    '`\n',
    ' ',
    '<br>',
    '*_[`',
    '<img alt="a" src="b">',
    '<h2>a</h2>',
  ],
];
const turn = Math.floor(Date.now() / 86_400_000);
const tried = units.filter((_, index) => isLong || index % 6 === turn % 6);

describe('htmlToMarkdown', () => {
  it.each(tried)(
    'takes at most three times as long for twice as many of %j',
    { timeout: 120_000 },
    (unit) => {
      const textOf = (length: number) => `<body>begun ${unit.repeat(length / unit.length)}`;
      const run = (html: string) => textOrProblem(() => htmlToMarkdown(html, 'https://x.example/'));
      expect(growthOf({ run, textOf }, isLong ? 64_000 : 16_000).kind).not.toBe('steep');
    },
  );
});

/** A page without text takes its time, too. */
function textOrProblem(read: () => string): string {
  try {
    return read();
  } catch (error) {
    return String(error);
  }
}
