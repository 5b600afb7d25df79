/**
 * Finds lists and tables in text as the gateway writes it: bullets `•`, tasks `☑` and `☐`, numbers with a dot,
 * two spaces per level; tables as aligned columns under a header and a rule. It only returns ranges, so no
 * character is lost. Linear.
 */
const marker = /^( *)(?:([•☑☐])|(\d{1,9})\.) /;

/**
 * @typedef {{ start: number, end: number }} Range
 * @typedef {{ lines: Range[], check?: boolean, lists: List[] }} Item
 * @typedef {{ kind: 'list', isOrdered: boolean, first: number, items: Item[] }} List
 * @returns {(List | ({ kind: 'paragraph' } & Range))[]}
 */
export function readBlocks(text, from, to) {
  const blocks = [];
  /** The open lists, outermost first. */
  let open = [];
  for (let start = from; start < to; ) {
    const next = text.indexOf('\n', start);
    const end = next === -1 || next > to ? to : next;
    const line = text.slice(start, end);
    const found = marker.exec(line);
    const indent = line.search(/\S/);
    if (found !== null) open = addItem(blocks, open, { found, start, end });
    else if (indent >= 0) open = addLine(blocks, open, { indent, start, end });
    start = end + 1;
  }
  return blocks;
}

function addItem(blocks, open, { found, start, end }) {
  const [mark, { length: indent }, sign, number] = found;
  const isOrdered = number !== undefined;
  const item = { lines: [{ start: start + mark.length, end }], lists: [] };
  if (sign === '☑' || sign === '☐') item.check = sign === '☑';
  const around = open.filter((list) => list.indent < indent);
  const same = open.find((list) => list.indent === indent && list.isOrdered === isOrdered);
  if (same !== undefined) {
    same.items.push(item);
    return [...around, same];
  }
  const list = { kind: 'list', isOrdered, first: Number(number ?? 1), items: [item], indent };
  const holder = around.at(-1)?.items.at(-1);
  if (holder === undefined) blocks.push(list);
  else holder.lists.push(list);
  return [...around, list];
}

/** A line that is indented more than an item continues it; any other line ends the lists. */
function addLine(blocks, open, { indent, start, end }) {
  const around = open.filter((list) => list.indent < indent);
  const holder = around.at(-1)?.items.at(-1);
  if (holder !== undefined) {
    holder.lines.push({ start: start + indent, end });
    return around;
  }
  const last = blocks.at(-1);
  if (last?.kind === 'paragraph') last.end = end;
  else blocks.push({ kind: 'paragraph', start, end });
  return [];
}

const rule = /^─+(?: {2}─+)*$/;
const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]|\p{Emoji_Presentation}/u;

/** Returns the rows of a table, header first; undefined for a code block that isn't a table. */
export function readTable(code) {
  const [head, line = '', ...rows] = code.split('\n');
  if (!rule.test(line)) return undefined;
  let at = 0;
  const columns = line.split('  ').map(({ length }) => {
    const start = at;
    at += length + 2;
    return { start, end: start + length };
  });
  return [head, ...rows].map((row) => cutAt(row, columns));
}

/** Splits a row where the columns begin, counted in cells of a monospaced font. */
function cutAt(row, columns) {
  const cells = columns.map(() => '');
  let width = 0;
  let column = 0;
  for (const character of row) {
    while (column + 1 < columns.length && width >= columns[column + 1].start) column += 1;
    cells[column] += character;
    if (!/\p{M}|\u200d|\ufe0f/u.test(character)) width += wide.test(character) ? 2 : 1;
  }
  return cells.map((cell) => cell.trim());
}
