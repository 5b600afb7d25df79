const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u;
const zeroWidth = /\p{Mark}|\p{Cf}/u;

/**
 * Returns text that is safe to print: without escape sequences, control characters other than newline and tab, and
 * characters that change the direction of text, so that a message can't disguise itself.
 */
export function printable(text: string): string {
  return (
    text
      .replaceAll('\r\n', '\n')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to remove
      .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-~])?/g, '')
      .replace(/[^\P{Cc}\n\t]/gu, '')
      .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
  );
}

/**
 * Cuts text into rows of at most `columns` cells, between words where possible. A space at the end of a row may exceed
 * the width by one cell.
 */
export function rowsOf(text: string, columns: number): readonly string[] {
  return text.split('\n').flatMap((line) => wrap(line.replaceAll('\t', '    '), columns));
}

/** Returns how many cells a text takes in one row. */
export function cellsOf(text: string): number {
  return [...text].reduce((cells, character) => cells + widthOf(character), 0);
}

function wrap(line: string, columns: number): readonly string[] {
  const rows: string[] = [];
  let row = '';
  let cells = 0;
  /** Where the row's last word begins, and the cells before it; 0: the row is a single word. */
  let word = { start: 0, cells: 0 };
  for (const character of line) {
    const width = widthOf(character);
    if (cells + width > columns) {
      const cut = character === ' ' || word.start === 0 ? row.length : word.start;
      rows.push(row.slice(0, cut) + (character === ' ' ? character : ''));
      row = row.slice(cut);
      cells = cut === word.start ? cells - word.cells : 0;
      word = { start: 0, cells: 0 };
      if (character === ' ') continue;
    }
    row += character;
    cells += width;
    // Never break after indentation.
    if (character === ' ' && row.trim() !== '') word = { start: row.length, cells };
  }
  return [...rows, row];
}

function widthOf(character: string): number {
  if (zeroWidth.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}
