const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
const zeroWidth = /\p{Mark}|\p{Cf}/u;

/**
 * Text that is safe to print: no escape sequence, no other control character than newline and tab, and no
 * character that turns the direction of text, so that a message cannot disguise itself.
 */
export function printable(text: string): string {
  return (
    text
      .replaceAll('\r\n', '\n')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
      .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-~])?/g, '')
      .replace(/[^\P{Cc}\n\t]/gu, '')
      .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
  );
}

/** Cuts text into rows of at most `columns` cells, as a screen would. */
export function rowsOf(text: string, columns: number): readonly string[] {
  return text.split('\n').flatMap((line) => wrap(line.replaceAll('\t', '    '), columns));
}

function wrap(line: string, columns: number): readonly string[] {
  const rows: string[] = [];
  let row = '';
  let cells = 0;
  for (const character of line) {
    const width = widthOf(character);
    if (cells + width > columns) {
      rows.push(row);
      row = '';
      cells = 0;
    }
    row += character;
    cells += width;
  }
  return [...rows, row];
}

function widthOf(character: string): number {
  if (zeroWidth.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}
