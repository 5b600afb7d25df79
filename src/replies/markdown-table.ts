import type { Table } from 'mdast';
import { plainOf } from './markdown-inline.ts';

/** Renders a table as aligned monospaced text: columns padded to their widest cell, a rule under the header. */
export function tableText(table: Table): string {
  const rows = table.children.map((row) => row.children.map((cell) => oneLine(plainOf(cell.children))));
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(1, ...rows.map((row) => displayWidth(row[column] ?? ''))),
  );
  const lines = rows.map((row) =>
    widths
      .map((width, column) => pad(row[column] ?? '', width, table.align?.[column]))
      .join('  ')
      .trimEnd(),
  );
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  return [lines[0] ?? '', rule, ...lines.slice(1)].join('\n');
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function pad(text: string, width: number, align: 'left' | 'right' | 'center' | null | undefined): string {
  const missing = width - displayWidth(text);
  if (align === 'right') return ' '.repeat(missing) + text;
  const left = align === 'center' ? Math.floor(missing / 2) : 0;
  return ' '.repeat(left) + text + ' '.repeat(missing - left);
}

/** Returns the width in columns of a monospaced font: wide scripts and emoji take two, combining marks none. */
function displayWidth(text: string): number {
  let width = 0;
  for (const char of text) {
    if (/\p{M}|\u200d|\ufe0f/u.test(char)) continue;
    width +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]|\p{Emoji_Presentation}/u.test(char)
        ? 2
        : 1;
  }
  return width;
}
