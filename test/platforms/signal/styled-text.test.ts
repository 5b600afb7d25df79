import { describe, expect, it } from 'vitest';
import { readStyledText } from './styled-text.ts';

const read = (message: string, release: '0.100' | 'head' = '0.100') => {
  const { text, styles } = readStyledText(message, release);
  return [text, ...styles.map(({ style, start, length }) => `${start}:${length}:${style}`)];
};

describe('text_mode styled', () => {
  it.each([
    ['*italic* and **bold**', ['italic and bold', '0:6:ITALIC', '11:4:BOLD']],
    ['~gone~ ||hidden|| `code`', ['gone hidden code', '0:4:STRIKETHROUGH', '5:6:SPOILER', '12:4:MONOSPACE']],
    ['*all **both***', ['all both', '4:4:BOLD', '0:8:ITALIC']],
    ['**all *both***', ['all both']],
    ['**all *both* end**', ['all both end', '4:4:ITALIC', '0:12:BOLD']],
    ['👋 **b**', ['👋 b', '3:1:BOLD']],
    ['no markers_here_ | at all', ['no markers_here_ | at all']],
    ['2 * 3', ['2  3']],
    ['~/home', ['/home']],
    ['```js\nx```', ['js\nx', '0:0:MONOSPACE', '0:4:MONOSPACE', '4:0:MONOSPACE']],
    ['**a * b**', ['a  b']],
    ['2 \\* 3 \\~ \\` \\|| \\|', ['2 * 3 ~ ` || |']],
    ['\\**x\\**', ['**x**']],
    ['a\\b \\\\ c', ['a\\b \\\\ c']],
    ['\\\\*x', ['\\*x']],
  ])('reads the styles of %s', (message, expected) => {
    expect(read(message)).toEqual(expected);
  });

  it('reads three asterisks as a style only in the newer release', () => {
    expect(read('***both***', 'head')).toEqual(['both', '0:4:BOLD', '0:4:ITALIC']);
    expect(read('***both***')).toEqual(['both']);
  });

  it('reports markers that never close', () => {
    expect(readStyledText('2 * 3 ~ 4', '0.100').lost).toEqual(['*', '~']);
    expect(readStyledText('2 \\* 3', '0.100').lost).toEqual([]);
  });
});
