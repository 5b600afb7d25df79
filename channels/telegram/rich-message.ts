/**
 * A rich message (Bot API 10.1 and later) → its words, the Markdown that the model reads, its files and its mentions.
 * Reads any tree: unknown kinds keep the text inside them, broken ones cost nothing beside them. Depth, number of nodes
 * and length are bounded. The tables of kinds are tied to the library's types.
 */
import type { RichBlock, RichText } from 'grammy/types';
import { fitChars } from '#channel-kit/clean-text.ts';
import { type Media, readMedia } from './content-schema.ts';
import { codeBlock, codeSpan, linkWords, quoteBlock, withName, withTime, wrapWords } from './entity-text.ts';
import { userSchema } from './fields.ts';
import type { Mention } from './mentions.ts';
import { nameOf } from './people.ts';

export type RichContent = {
  /** The words alone, from which commands and mentions are read. */
  readonly text: string;
  /** The words as Markdown. */
  readonly shown: string;
  readonly media: readonly Media[];
  readonly mentions: readonly Mention[];
  readonly beginsInQuotation: boolean;
};

/** Telegram allows 16 levels, 500 blocks and 32,768 characters. */
const limits = { depth: 40, nodes: 20_000, chars: 65_536, media: 100 };

type Node = Readonly<Record<string, unknown>>;
type Inline = (node: Node, words: string, reader: RichReader) => string;
type Block = (node: Node, reader: RichReader) => string;

/** Returns undefined if nothing in it can be read. */
export function readRichMessage(value: unknown): RichContent | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const plain = new RichReader('words');
  const reader = new RichReader('markdown');
  const [text, shown] = [plain.blocks(blocksOf(value)), reader.blocks(blocksOf(value))];
  if (shown.trim() === '' && reader.media.length === 0) return undefined;
  const { media, mentions } = reader;
  return {
    text: fitChars(text, limits.chars),
    shown: fitChars(shown, limits.chars),
    media,
    mentions,
    beginsInQuotation: beginsInQuotation(blocksOf(value)),
  };
}

/** Takes the value itself if its blocks have moved. */
function blocksOf(value: object): unknown {
  return 'blocks' in value && value.blocks !== null ? value.blocks : value;
}

function beginsInQuotation(blocks: unknown): boolean {
  const first: unknown = Array.isArray(blocks) ? blocks[0] : undefined;
  return typeof first === 'object' && first !== null && /quot/.test(stringOf((first as Node).type));
}

const asIs: Inline = (_, words) => words;
const around =
  (before: string, after = before): Inline =>
  (_, words) =>
    wrapWords(words, before, after);
const linkTo =
  (field: string, scheme = ''): Inline =>
  (node, words) =>
    linkWords(words, stringOf(node[field]) && scheme + stringOf(node[field]));

const inlines = {
  bold: around('**'),
  italic: around('_'),
  underline: asIs,
  strikethrough: around('~~'),
  spoiler: around('||'),
  subscript: around('<sub>', '</sub>'),
  superscript: around('<sup>', '</sup>'),
  marked: around('=='),
  code: (_, words) => codeSpan(words),
  date_time: (node, words) => withTime(words, numberOf(node.unix_time)),
  text_mention: (node, words) => withName(words, nameOfUser(node.user)),
  custom_emoji: (node, words) => stringOf(node.alternative_text) || words,
  mathematical_expression: ({ expression }, words, { isPlain }) =>
    wrapWords(stringOf(expression) || words, isPlain ? '' : '$'),
  url: linkTo('url'),
  email_address: linkTo('email_address', 'mailto:'),
  phone_number: linkTo('phone_number', 'tel:'),
  bank_card_number: asIs,
  mention: asIs,
  hashtag: asIs,
  cashtag: asIs,
  bot_command: asIs,
  button: (node, words, reader) => buttonText(node.button, words, reader),
  anchor: () => '',
  anchor_link: asIs,
  reference: asIs,
  reference_link: asIs,
} satisfies Record<Exclude<RichText, string | RichText[]>['type'], Inline>;

/** Kinds whose words are written in a field of their own; without formatting, too. */
const wordless: ReadonlySet<string> = new Set([
  'custom_emoji',
  'mathematical_expression',
  'button',
  'anchor',
]);

const paragraph: Block = ({ text }, reader) => reader.inline(text);
const quotation: Block = (node, reader) => {
  if (reader.isPlain) return bodyOf(node, reader);
  const words = joinLines(bodyOf(node, reader), credit(node, reader));
  return reader.marked(quoteBlock(words), words);
};
const album: Block = (node, reader) => joinLines(reader.blocks(node.blocks), captionOf(node, reader));

const blocks = {
  paragraph,
  footer: paragraph,
  thinking: paragraph,
  heading: ({ text, size }, reader) => {
    const level = '#'.repeat(Math.min(6, Math.max(1, Math.trunc(numberOf(size) ?? 1))));
    const words = reader.inline(text);
    return reader.isPlain || words.trim() === '' ? words : `${level} ${words}`;
  },
  pre: ({ text, language }, reader) => {
    const code = reader.words(text);
    return reader.isPlain ? code : codeBlock(code, stringOf(language));
  },
  divider: (_, { isPlain }) => (isPlain ? '' : '---'),
  mathematical_expression: ({ expression }, { isPlain }) =>
    isPlain || stringOf(expression) === '' ? stringOf(expression) : `$$${stringOf(expression)}$$`,
  anchor: () => '',
  list: ({ items }, reader) => reader.each(items, (item) => listItem(item, reader)).join('\n'),
  blockquote: quotation,
  expandable_blockquote: quotation,
  pullquote: quotation,
  collage: album,
  slideshow: album,
  table: (node, reader) => table(node, reader),
  details: (node, reader) => {
    const summary = reader.inline(node.summary);
    return joinLines(reader.isPlain ? summary : wrapWords(summary, '**'), reader.blocks(node.blocks));
  },
  map: (node, reader) => joinLines(placeText(node.location), captionOf(node, reader)),
  animation: file('animation'),
  audio: file('audio'),
  document: file('document'),
  photo: file('photo'),
  video: file('video'),
  voice_note: file('voice_note', 'voice'),
  buttons: ({ buttons }, reader) =>
    reader.each(buttons, (button) => buttonText(button, reader.inline(button.text), reader)).join(' '),
} satisfies Record<RichBlock['type'], Block>;

function file(field: string, mediaField = field): Block {
  return (node, reader) => {
    reader.keep(readMedia({ [mediaField]: node[field] }));
    const caption = captionOf(node, reader);
    const kind = field.replace('_', ' ');
    return reader.isPlain ? caption : `[${kind}${caption === '' ? '' : `: ${caption}`}]`;
  };
}

function bodyOf(node: Node, reader: RichReader): string {
  return joinLines(reader.inline(node.text), reader.blocks(node.blocks));
}

function credit(node: Node, reader: RichReader): string {
  const words = reader.inline(node.credit);
  return words === '' ? '' : `— ${words}`;
}

function captionOf({ caption }: Node, reader: RichReader): string {
  if (!isNode(caption)) return reader.inline(caption);
  return 'credit' in caption
    ? joinLines(reader.inline(caption.text ?? ''), credit(caption, reader))
    : reader.inline('type' in caption ? caption : caption.text);
}

function listItem(item: Node, reader: RichReader): string {
  const label = stringOf(item.label);
  const box = item.has_checkbox === true ? `[${item.is_checked === true ? 'x' : ' '}] ` : '';
  const bullet = /^[\p{L}\p{N}]/u.test(label) ? label : '-';
  const body = joinLines(reader.inline(item.text), reader.blocks(item.blocks, '\n'));
  return `${bullet} ${box}${reader.marked(body.replaceAll('\n', '\n  '), body)}`;
}

function table(node: Node, reader: RichReader): string {
  const rows = reader.each(node.cells, (row) => {
    const cells = reader.each(row, (cell) => reader.inline(cell.text).replaceAll(/\s*\n\s*/g, ' '));
    return reader.isPlain
      ? cells.join(' ')
      : `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  });
  const [first, ...rest] = rows;
  if (first === undefined || reader.isPlain) return joinLines(reader.inline(node.caption), ...rows);
  const columns = Array.isArray(node.cells) && Array.isArray(node.cells[0]) ? node.cells[0].length : 1;
  const rule = `|${' --- |'.repeat(Math.min(100, Math.max(1, columns)))}`;
  return joinLines(reader.inline(node.caption), first, rule, ...rest);
}

function buttonText(button: unknown, words: string, { isPlain }: RichReader): string {
  if (isPlain || !isNode(button)) return words;
  return `[button: ${linkWords(words, stringOf(button.url))}]`;
}

function placeText(location: unknown): string {
  if (!isNode(location)) return '';
  const [latitude, longitude] = [numberOf(location.latitude), numberOf(location.longitude)];
  return latitude === undefined || longitude === undefined ? '' : `📍 ${latitude}, ${longitude}`;
}

/** Members of a node of an unknown kind that are no words. */
const notWords = /^(?:type|style|align|valign|language|mime_type|file_name)$|(?:^|_)(?:id|ids|format)$/;

/** Reads one tree once, in a time that is linear in its size. */
class RichReader {
  readonly isPlain: boolean;
  readonly media: Media[] = [];
  readonly mentions: Mention[] = [];
  #depth = 0;
  #nodes = 0;
  #chars = 0;

  constructor(style: 'words' | 'markdown') {
    this.isPlain = style === 'words';
  }

  /** Renders blocks, with a blank line between two of them unless the caller wants another gap. */
  blocks(value: unknown, gap = this.isPlain ? '\n' : '\n\n'): string {
    const all = Array.isArray(value) ? value : [value];
    const rendered = this.#inside(() => all.map((block) => this.#block(block)), []);
    return rendered.filter((block) => block !== '').join(gap);
  }

  /** Renders the members of a list; a member that isn't an object counts as its own text. */
  each<Result>(value: unknown, render: (node: Node) => Result): readonly Result[] {
    if (!Array.isArray(value)) return [];
    return this.#inside(() => {
      const results: Result[] = [];
      for (const member of value) {
        if (!this.#count()) break;
        if (member === null || member === undefined) continue;
        results.push(render(isNode(member) || Array.isArray(member) ? (member as Node) : { text: member }));
      }
      return results;
    }, []);
  }

  /** Renders rich text: a text, a list, or a marked piece. */
  inline(value: unknown): string {
    if (typeof value === 'string') return this.#take(value);
    if (Array.isArray(value)) return this.each(value, (node) => this.#piece(node)).join('');
    return isNode(value) ? this.#inside(() => this.#piece(value), '') : '';
  }

  /** Renders the words of rich text without marks, as in code. */
  words(value: unknown): string {
    const plain = this.isPlain ? this : new RichReader('words');
    return plain.inline(value);
  }

  keep(media: Media): void {
    if (this.media.length < limits.media && Object.values(media).some((one) => one !== undefined))
      this.media.push(media);
  }

  /** Counts what marks add to words, and leaves marks out beyond the limit. */
  marked(marked: string, words: string): string {
    this.#chars += Math.max(0, marked.length - words.length);
    return this.#chars > limits.chars * 2 ? words : marked;
  }

  #block(block: unknown): string {
    if (!this.#count()) return '';
    if (typeof block === 'string' || Array.isArray(block)) return this.inline(block);
    if (!isNode(block)) return '';
    const render = kindOf<Block>(blocks, block);
    if (render !== undefined) return render(block, this);
    return kindOf<Inline>(inlines, block) ? this.inline(block) : this.#unknown(block);
  }

  #piece(node: Node): string {
    if (!this.#count()) return '';
    if (Array.isArray(node)) return this.inline(node);
    const render = kindOf<Inline>(inlines, node);
    if (render === undefined) return 'type' in node ? this.#unknown(node) : this.inline(node.text);
    const words = this.inline(node.type === 'button' && isNode(node.button) ? node.button.text : node.text);
    this.#mention(node, words);
    return this.isPlain && !wordless.has(stringOf(node.type))
      ? words
      : this.marked(render(node, words, this), words);
  }

  /** Keeps all text inside a node of a kind that nobody knows yet, and its files. */
  #unknown(node: Node): string {
    this.keep(readMedia(node));
    const parts = Object.entries(node).map(([key, value]) => {
      if (notWords.test(key) || key.startsWith('file_')) return '';
      if (typeof value === 'string') return this.#take(value);
      return typeof value === 'object' && value !== null ? this.blocks(value) : '';
    });
    return parts.filter((part) => part !== '').join(this.isPlain ? '\n' : '\n\n');
  }

  #mention(node: Node, words: string): void {
    if (this.mentions.length >= 200) return;
    const type = stringOf(node.type);
    if (type === 'mention')
      this.mentions.push({ type, words: `@${(stringOf(node.username) || words).replace(/^@/, '')}` });
    if (type === 'bot_command') this.mentions.push({ type, words: stringOf(node.bot_command) || words });
    const user = isNode(node.user) ? numberOf(node.user.id) : undefined;
    if (type === 'text_mention' && user !== undefined) this.mentions.push({ type, words, user });
    if (type === 'url') this.mentions.push({ type: 'text_link', words, url: stringOf(node.url) });
  }

  /** Counts words; returns nothing of what exceeds the limit. */
  #take(words: string): string {
    const left = Math.max(0, limits.chars * 2 - this.#chars);
    this.#chars += words.length;
    return words.slice(0, left);
  }

  #count(): boolean {
    this.#nodes += 1;
    return this.#nodes <= limits.nodes;
  }

  #inside<Result>(read: () => Result, tooDeep: Result): Result {
    if (this.#depth >= limits.depth) return tooDeep;
    this.#depth += 1;
    const result = read();
    this.#depth -= 1;
    return result;
  }
}

function kindOf<Render>(table: Readonly<Record<string, unknown>>, { type }: Node): Render | undefined {
  return typeof type === 'string' && Object.hasOwn(table, type) ? (table[type] as Render) : undefined;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function nameOfUser(value: unknown): string {
  const user = userSchema.safeParse(value);
  return user.success ? nameOf(user.data) : '';
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function joinLines(...lines: readonly string[]): string {
  return lines.filter((line) => line !== '').join('\n');
}
