/**
 * Renders a table as aligned monospaced text: columns padded to their widest cell, a rule under the header. Code can't
 * contain links, so their addresses are listed below it. For a client that draws tables itself, the span has the cells.
 */
import type { PhrasingContent, Table } from 'mdast';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { Span, SpanTable } from '#contracts/span.ts';
import { FormattedTextWriter } from './formatted-text-writer.ts';
import { writeInline } from './markdown-inline.ts';

type Cell = SpanTable['rows'][number][number];
type Align = SpanTable['align'][number];

/** A longer address in a cell is shortened to its host, UTF-16 units. */
const LONGEST_ADDRESS = 30;
/** A longer table is only shown as text, UTF-16 units. */
const LONGEST_DRAWN = 20_000;
const LINE_BREAK = /\s*<br\s{0,9}\/?>\s*/gi;

export function writeTable(writer: FormattedTextWriter, { align = [], children }: Table): void {
  const rows = children.map((row) => row.children.map((cell) => formatCell(cell.children)));
  /** The addresses in order of their numbers. */
  const addresses = new Map<string, number>();
  const lines = rows.map((row) => row.map((cell) => linesOf(cell, addresses)));
  const text = alignedText(lines, align ?? []);
  const isDrawn = text.length <= LONGEST_DRAWN;
  const table = isDrawn ? { align: align ?? [], rows, notes: addresses.size } : undefined;
  writer.marked({ codeBlock: undefined, table }, () => writer.writeRaw(text));
  for (const [url, number] of addresses) {
    writer.write(`\n[${number}] `);
    writer.marked({ link: url }, () => writer.writeRaw(url));
  }
}

function formatCell(content: readonly PhrasingContent[]): Cell {
  const writer = new FormattedTextWriter();
  writeInline(writer, content.map(withBreaks));
  const { text, spans } = writer.finish();
  return { text, spans: spans.filter((span) => span.kind !== 'code-block') };
}

/** A cell can only contain a line break as HTML. */
function withBreaks<Node extends PhrasingContent>(node: Node): Node {
  if (node.type === 'text') return { ...node, value: node.value.replace(LINE_BREAK, '\n') };
  return 'children' in node ? { ...node, children: node.children.map(withBreaks) } : node;
}

/** Returns the cell's lines, in which each link is followed by the number of its address. */
function linesOf({ text, spans }: FormattedText, addresses: Map<string, number>): readonly string[] {
  let shown = '';
  let at = 0;
  for (const span of linksIn(spans)) {
    const end = span.start + span.length;
    const label = text.slice(span.start, end);
    const isBare = [label, `http://${label}`, `mailto:${label}`].includes(span.url);
    const isShown = isBare && label.length <= LONGEST_ADDRESS;
    const number = isShown ? undefined : numberOf(span.url, addresses);
    const word = isBare && URL.canParse(span.url) ? new URL(span.url).host || label : label;
    shown += text.slice(at, span.start) + (number === undefined ? label : `${word} [${number}]`);
    at = end;
  }
  return (shown + text.slice(at)).split('\n').map((line) => line.replace(/\s+/g, ' ').trim());
}

function linksIn(spans: readonly Span[]): readonly Extract<Span, { kind: 'link' }>[] {
  return spans.filter((span) => span.kind === 'link');
}

function numberOf(url: string, addresses: Map<string, number>): number {
  const number = addresses.get(url) ?? addresses.size + 1;
  addresses.set(url, number);
  return number;
}

function alignedText(rows: readonly (readonly (readonly string[])[])[], align: readonly Align[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(1, ...rows.flatMap((row) => (row[column] ?? []).map(displayWidth))),
  );
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  const [head = '', ...body] = rows.map((row) => {
    const height = Math.max(1, ...row.map((cell) => cell.length));
    const lineAt = (line: number) =>
      widths.map((width, column) => pad(row[column]?.[line] ?? '', width, align[column])).join('  ');
    return Array.from({ length: height }, (_, line) => lineAt(line).trimEnd()).join('\n');
  });
  return [head, rule, ...body].join('\n');
}

function pad(text: string, width: number, align: Align | undefined): string {
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
