/**
 * Converts the model's Markdown (CommonMark with GFM) to text and spans. HTML, definitions and footnotes
 * are shown as written, because nothing a model wrote may disappear. The parser is loaded for the first
 * text that contains markup.
 */
import { createRequire } from 'node:module';
import type {
  BlockContent,
  Code,
  DefinitionContent,
  List,
  ListItem,
  PhrasingContent,
  Root,
  RootContent,
  Table,
} from 'mdast';
import { type FormattedText, plainText, type Span, type SpanTable } from '#contracts/formatted-text.ts';
import { FormattedTextWriter } from './formatted-text-writer.ts';
import { hideLiterals, showLiterals } from './literal-text.ts';
import { piecesOf } from './markdown-pieces.ts';

/** A text without any of these needs no parsing: it is shown unchanged, including its paragraph breaks. */
const MARKUP =
  /[*_~`#>[\]|\\&<!]|^[ \t]*(?:[-+]|\d{1,9}[.)])\s|https?:|www\.|@|\n[ \t]*(?:=+|-{2,})|^[ \t]*-{3,}|(?:^|\n)(?: {4}|\t)| {2}\n|\n{3,}/m;

/** Over this length (UTF-16 units) or nesting, markup is shown as written: the parser must not stall the gateway. */
export const LONGEST_PARSED = 100_000;
const TOO_DEEP = /[>*+[(!_~]{64,}|(?:(?:[>*+-]|\d{1,9}[.)])[ \t]+|>){64,}/;
/** Lines that repeat one character, which nest nothing. */
const RULES = /^[ \t]*([-*_=~])(?:[ \t]*\1)*[ \t]*$/gm;

/**
 * The parser takes up to quadratic time in characters that may be markup, and hardly any in plain words. While a
 * bracket is open, it looks back over the entire text at each word. Of 450 texts designed to be slow, each at the
 * limits of length and signs below, the worst takes 8.6 ms of CPU time, including the split into messages.
 */
const QUICK_LENGTH = 3_000;
const QUICK_LENGTH_WITH_BRACKETS = 1_500;
const QUICK_SIGNS = 200;

/** Says whether a text may be parsed on the event loop. Linear. */
export function isQuickToParse(markdown: string): boolean {
  const longest = markdown.includes('[') ? QUICK_LENGTH_WITH_BRACKETS : QUICK_LENGTH;
  if (markdown.length > longest) return false;
  return markdown.replace(/[\p{L}\p{N} ]+/gu, '').length <= QUICK_SIGNS;
}

/** Formats a text. Never throws: text that the parser can't handle is shown as written. */
export function formatMarkdown(markdown: string): FormattedText {
  const text = markdown.trim();
  if (!MARKUP.test(text) || text.length > LONGEST_PARSED) return plainText(text);
  try {
    const hidden = hideLiterals(markdown.trimEnd());
    if (TOO_DEEP.test(hidden.replace(RULES, ''))) return plainText(text);
    const writer = new FormattedTextWriter();
    writeBlocks(writer, blocksOf(hidden));
    return writer.finish();
  } catch {
    // The nesting is too deep for the parser's recursion; the reader loses the formatting, not the answer.
    return plainText(text);
  }
}

/** Parses a text in pieces of at least this length, and yields its blocks. */
export function* blocksOf(markdown: string, least?: number): Generator<Block> {
  for (const piece of piecesOf(markdown, least)) yield* parse(piece).children;
}

function parse(markdown: string): Root {
  const { fromMarkdown, gfm, gfmFromMarkdown, cjkFriendlyExtension, gfmStrikethroughCjkFriendly } =
    loadParser();
  return fromMarkdown(markdown, {
    extensions: [
      gfm({ singleTilde: false }),
      // Without these, emphasis doesn't end between punctuation and a Chinese, Japanese or Korean character.
      cjkFriendlyExtension(),
      gfmStrikethroughCjkFriendly({ singleTilde: false }),
      {
        disable: { null: ['htmlFlow', 'htmlText', 'definition', 'gfmFootnoteCall', 'gfmFootnoteDefinition'] },
      },
    ],
    mdastExtensions: [gfmFromMarkdown()],
  });
}

/**
 * Loads the parser synchronously: about 70 ms once, then Node's module cache answers. The casts add the
 * types that `require` lacks.
 */
function loadParser() {
  const require = createRequire(import.meta.url);
  const { fromMarkdown } = require('mdast-util-from-markdown') as typeof import('mdast-util-from-markdown');
  const { gfm } = require('micromark-extension-gfm') as typeof import('micromark-extension-gfm');
  const { gfmFromMarkdown } = require('mdast-util-gfm') as typeof import('mdast-util-gfm');
  const { cjkFriendlyExtension } =
    require('micromark-extension-cjk-friendly') as typeof import('micromark-extension-cjk-friendly');
  const { gfmStrikethroughCjkFriendly } =
    require('micromark-extension-cjk-friendly-gfm-strikethrough') as typeof import('micromark-extension-cjk-friendly-gfm-strikethrough');
  return { fromMarkdown, gfm, gfmFromMarkdown, cjkFriendlyExtension, gfmStrikethroughCjkFriendly };
}

type Block = Root['children'][number] | BlockContent | DefinitionContent | RootContent;
type Level = { readonly depth: number };

const TOP: Level = { depth: 0 };

/** Writes blocks with empty lines between them. */
function writeBlocks(writer: FormattedTextWriter, blocks: Iterable<Block>, level: Level = TOP): void {
  let isFirst = true;
  for (const block of blocks) {
    if (!isFirst) writer.write('\n\n');
    isFirst = false;
    writeBlock(writer, block, level);
  }
}

function writeBlock(writer: FormattedTextWriter, block: Block, level: Level): void {
  switch (block.type) {
    case 'paragraph':
      writeInline(writer, block.children);
      break;
    case 'heading':
      writer.marked({ heading: block.depth }, () => writeInline(writer, block.children));
      break;
    case 'blockquote':
      writer.marked('quote', () => writeBlocks(writer, block.children, level));
      break;
    case 'code':
      writeCode(writer, block);
      break;
    case 'list':
      writeList(writer, block, level);
      break;
    case 'table':
      writeTable(writer, block);
      break;
    case 'thematicBreak':
      writer.write('———');
      break;
    default:
      // Definitions, footnotes and raw HTML are disabled in the parser, so this is inline content.
      writeInline(writer, [block]);
  }
}

function writeList(writer: FormattedTextWriter, list: List, level: Level): void {
  const first = list.start ?? 1;
  const between = list.spread === true ? '\n\n' : '\n';
  list.children.forEach((item, index) => {
    if (index > 0) writer.write(between);
    const bullet = list.ordered === true ? `${first + index}. ` : '• ';
    writeItem(writer, item, { bullet, level });
  });
}

function writeItem(
  writer: FormattedTextWriter,
  item: ListItem,
  { bullet, level }: { readonly bullet: string; readonly level: Level },
): void {
  const task = item.checked === true ? '☑ ' : item.checked === false ? '☐ ' : undefined;
  writer.write(task ?? bullet);
  const deeper = { depth: level.depth + 1 };
  writer.indented('  '.repeat(deeper.depth), () => {
    item.children.forEach((child, index) => {
      if (index > 0) writer.write(item.spread === true && child.type !== 'list' ? '\n\n' : '\n');
      writeBlock(writer, child, deeper);
    });
  });
}

/** Uses a fence's info string as the language if it is one plain word, and otherwise keeps it as a first line. */
function writeCode(writer: FormattedTextWriter, { lang, meta, value }: Code): void {
  const info = showLiterals([lang, meta].filter((word) => typeof word === 'string' && word !== '').join(' '));
  const isLanguage = value !== '' && /^[\w+#.-]{1,32}$/.test(info);
  writer.marked({ codeBlock: isLanguage ? info : undefined }, () => {
    const code = showLiterals(value);
    writer.writeRaw(isLanguage || info === '' ? code : `${info}\n${code}`.trimEnd());
  });
}

type Inline = PhrasingContent | RootContent;

const SPOILER = /(?<![|\w])\|\|(?=[^\s|])([^|\n]*[^\s|])\|\|(?![|\w])/g;

function writeInline(writer: FormattedTextWriter, nodes: readonly Inline[]): void {
  for (const node of nodes) writeNode(writer, node);
}

/** Returns the visible text of inline content, without its marks. */
function plainOf(nodes: readonly Inline[]): string {
  return nodes.map(plainNode).join('');
}

function writeNode(writer: FormattedTextWriter, node: Inline): void {
  switch (node.type) {
    case 'text':
      writeText(writer, node.value);
      break;
    case 'strong':
      writer.marked('bold', () => writeInline(writer, node.children));
      break;
    case 'emphasis':
      writer.marked('italic', () => writeInline(writer, node.children));
      break;
    case 'delete':
      writer.marked('strikethrough', () => writeInline(writer, node.children));
      break;
    case 'inlineCode':
      writer.marked('code', () => writer.writeRaw(showLiterals(node.value)));
      break;
    case 'break':
      writer.write('\n');
      break;
    case 'link':
      writeLink(writer, showLiterals(node.url), node.children);
      break;
    case 'image':
      writeLink(writer, showLiterals(node.url), [{ type: 'text', value: node.alt ?? '' }]);
      break;
    default:
      writer.write(plainNode(node));
  }
}

/** Writes a link, or its label and target if the target isn't what the label says or has no allowed scheme. */
function writeLink(writer: FormattedTextWriter, url: string, label: readonly Inline[]): void {
  const said = plainOf(label).trim() || url;
  const isBare = [said, `http://${said}`, `mailto:${said}`].includes(url);
  const write = () => (isBare ? writer.writeRaw(said) : writeInline(writer, label));
  if (isHonestLink(url, said)) {
    writer.marked({ link: url }, write);
    return;
  }
  write();
  if (!isBare) writer.writeRaw(` (${url})`);
}

function writeText(writer: FormattedTextWriter, text: string): void {
  let at = 0;
  for (const match of text.matchAll(SPOILER)) {
    writer.write(showLiterals(text.slice(at, match.index)));
    writer.marked('spoiler', () => writer.write(showLiterals(match[1] ?? '')));
    at = match.index + match[0].length;
  }
  writer.write(showLiterals(text.slice(at)));
}

function plainNode(node: Inline): string {
  if ('children' in node) return plainOf(node.children);
  if (node.type === 'image') return showLiterals(node.alt ?? node.url);
  if (node.type === 'break') return '\n';
  return 'value' in node ? showLiterals(node.value) : '';
}

/**
 * Decides whether a link is kept: its target must be on the web (or mail or phone), and its label, if it
 * looks like an address, must name the same host. Other schemes can ping people or start programs.
 */
const SCHEMES = new Set(['http:', 'https:', 'mailto:', 'tel:']);
const ADDRESS =
  /(?:^|[\s(])(?:[a-z][a-z0-9+.-]*:\/\/)?((?:[\p{L}\p{N}-]+\.)+(\p{L}{2,24}))(?::\d+)?(?=[/?#\s).,;:!]|$)/iu;
/** Endings that are far more often those of files than of hosts. */
const FILE_ENDING =
  /^(?:md|ts|js|mjs|py|rs|sh|go|json|ya?ml|toml|txt|html?|css|csv|pdf|png|jpe?g|zip|sql|java|cpp)$/i;

/**
 * Links with longer addresses (UTF-16 units) stay text: on networks that write links into the message, each piece of
 * the label contains the complete address.
 */
const LONGEST_ADDRESS = 1_000;

/** Returns false if the link could lead somewhere other than its label says. */
export function isHonestLink(url: string, label: string): boolean {
  if (url.length > LONGEST_ADDRESS) return false;
  const target = parseUrl(url);
  // A space would end the link early in some networks' markup; a user name disguises the host.
  if (!target || !SCHEMES.has(target.protocol) || target.username !== '' || /\s/.test(url)) return false;
  const claim = ADDRESS.exec(label);
  if (!target.protocol.startsWith('http') || !claim) return true;
  const [, host = '', ending = ''] = claim;
  return FILE_ENDING.test(ending) || bareHost(host) === bareHost(target.hostname);
}

function bareHost(name: string): string {
  return (parseUrl(`https://${name}`)?.hostname ?? name).replace(/^www\./, '');
}

function parseUrl(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}

/**
 * Renders a table as aligned monospaced text: columns padded to their widest cell, a rule under the header. Code can't
 * contain links, so their addresses are listed below it. For a client that draws tables itself, the span has the cells.
 */
type Cell = SpanTable['rows'][number][number];
type Align = SpanTable['align'][number];

/** A longer address in a cell is shortened to its host, UTF-16 units. */
const LONGEST_CELL_ADDRESS = 30;
/** A longer table is only shown as text, UTF-16 units. */
const LONGEST_DRAWN = 20_000;
const LINE_BREAK = /\s*<br\s{0,9}\/?>\s*/gi;

function writeTable(writer: FormattedTextWriter, { align = [], children }: Table): void {
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
    const isShown = isBare && label.length <= LONGEST_CELL_ADDRESS;
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
