/**
 * Text and its entities → the text as the model reads it: addresses behind words, code in fences, quotations, times.
 * Linear in the text and the entities, whatever they overlap.
 */
import type { MessageEntity } from 'grammy/types';
import type { Entity } from './fields.ts';
import { nameOf } from './people.ts';

/** How one kind of entity shows; undefined: its words say everything. */
type Mark = ((words: string, entity: Entity) => string) | undefined;

const around = (mark: string) => (words: string) => wrapWords(words, mark);

// Formatting as the model reads it: Markdown around words. The words themselves stay as they were written.

/** Longer addresses are left out: nothing real has one, and each may be repeated thousands of times. */
const maxUrlLength = 2048;

/** Puts marks around the words, but not around white space at their ends, where Markdown doesn't see them. */
export function wrapWords(words: string, before: string, after = before): string {
  const core = words.trim();
  if (core === '') return words;
  const start = words.length - words.trimStart().length;
  const end = start + core.length;
  return `${words.slice(0, start)}${before}${core}${after}${words.slice(end)}`;
}

/** Keeps the address behind words, unless the words are the address. */
export function linkWords(label: string, url: string | undefined): string {
  if (url === undefined || url === '' || url.length > maxUrlLength || isSameAddress(label, url)) return label;
  if (label.trim() === '') return `${label}<${safeUrl(url)}>`;
  return wrapWords(label.replaceAll(/[[\]\\]/g, '\\$&'), '[', `](${safeUrl(url)})`);
}

function isSameAddress(label: string, url: string): boolean {
  const bare = (text: string) =>
    text
      .trim()
      .replace(/^(?:https?:\/\/|mailto:|tel:)/i, '')
      .replace(/\/$/, '');
  return bare(label) === bare(url);
}

/** Encodes characters that would end the destination of a link. */
function safeUrl(url: string): string {
  return url.replaceAll(/[\s()<>\\]/g, (found) => `%${found.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

/** Wraps code in backticks, more than it contains in a row. */
export function codeSpan(code: string): string {
  if (code.trim() === '') return code;
  const ticks = '`'.repeat(longestRun(code) + 1);
  const gap = /^`|`$/.test(code) ? ' ' : '';
  return `${ticks}${gap}${code}${gap}${ticks}`;
}

/** A block of code between fences, on lines of its own. */
export function codeBlock(code: string, language = ''): string {
  const fence = '`'.repeat(Math.max(3, longestRun(code) + 1));
  return `${fence}${/^[\w+#.-]{1,32}$/.test(language) ? language : ''}\n${code.replace(/\n$/, '')}\n${fence}`;
}

function longestRun(code: string): number {
  return [...code.matchAll(/`+/g)].reduce((longest, [run]) => Math.max(longest, run.length), 0);
}

export function quoteBlock(words: string): string {
  return `> ${words.replaceAll('\n', '\n> ')}`;
}

/** Adds the exact time behind words such as “tomorrow at ten”. */
export function withTime(words: string, unixTime: number | undefined): string {
  const time = unixTime === undefined ? '' : formatTime(unixTime);
  return time === '' || words.includes(time) ? words : `${words} (${time})`;
}

/** Returns, for example, `2026-11-27 14:05 UTC`; empty for an impossible time. */
export function formatTime(seconds: number): string {
  const time = new Date(seconds * 1000);
  return Number.isNaN(time.getTime()) ? '' : `${time.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Adds whose name the words stand for, if they say something else. */
export function withName(words: string, name: string): string {
  const isNamed =
    name === '' || words.trim() === '' || name.toLowerCase().includes(words.trim().toLowerCase());
  return isNamed ? words : `${words} (${name})`;
}

/** Every kind that the library knows; any other keeps its words. */
const marks = {
  bold: around('**'),
  italic: around('_'),
  underline: undefined,
  strikethrough: around('~~'),
  spoiler: around('||'),
  code: codeSpan,
  pre: (words, { language }) => codeBlock(words, language),
  blockquote: quoteBlock,
  expandable_blockquote: quoteBlock,
  text_link: (words, { url }) => linkWords(words, url),
  text_mention: (words, { user }) => (user === undefined ? words : withName(words, nameOf(user))),
  date_time: (words, { unix_time: time }) => withTime(words, time),
  /** The words are the emoji that clients show where they can't show the custom one. */
  custom_emoji: undefined,
  mention: undefined,
  hashtag: undefined,
  cashtag: undefined,
  bot_command: undefined,
  url: undefined,
  email: undefined,
  phone_number: undefined,
} satisfies Record<MessageEntity['type'], Mark>;

const blocks: ReadonlySet<string> = new Set(['pre', 'blockquote', 'expandable_blockquote']);
/** Entities inside others beyond this are left out. */
const maxDepth = 16;
/** All marks together add at most this, so that no text grows without bound, in UTF-16 code units. */
const maxAdded = 65_536;

type Frame = { readonly entity: Entity | undefined; readonly end: number; inner: string };

/** Returns the text as the model reads it. */
export function renderEntities(text: string, entities: readonly Entity[] = []): string {
  const marked = entities.filter(
    ({ type, offset, length }) => length > 0 && offset < text.length && markOf(type),
  );
  if (marked.length === 0) return text;
  const writer = new EntityWriter(text);
  for (const entity of marked.sort((a, b) => a.offset - b.offset || b.length - a.length)) writer.open(entity);
  return writer.end();
}

function markOf(type: string): Mark {
  return Object.hasOwn(marks, type) ? (marks as Record<string, Mark>)[type] : undefined;
}

class EntityWriter {
  readonly #text: string;
  readonly #root: Frame;
  readonly #open: Frame[] = [];
  #at = 0;
  #added = 0;

  constructor(text: string) {
    this.#text = text;
    this.#root = { entity: undefined, end: text.length, inner: '' };
  }

  get #top(): Frame {
    return this.#open.at(-1) ?? this.#root;
  }

  /** Opens the next entity, by offset. One that reaches beyond the entity around it is cut there. */
  open(entity: Entity): void {
    this.#writeUntil(entity.offset);
    if (this.#open.length >= maxDepth) return;
    const end = Math.min(entity.offset + entity.length, this.#top.end);
    this.#open.push({ entity, end, inner: '' });
  }

  end(): string {
    this.#writeUntil(this.#text.length);
    return this.#root.inner;
  }

  #writeUntil(offset: number): void {
    while (this.#open.length > 0 && this.#top.end <= offset) {
      const { entity, end, inner } = this.#top;
      const words = inner + this.#text.slice(this.#at, end);
      this.#at = Math.max(this.#at, end);
      this.#open.pop();
      if (entity) this.#close(entity, words);
    }
    this.#top.inner += this.#text.slice(this.#at, offset);
    this.#at = Math.max(this.#at, offset);
  }

  #close(entity: Entity, words: string): void {
    const marked = markOf(entity.type)?.(words, entity) ?? words;
    this.#added += Math.max(0, marked.length - words.length);
    const outer = this.#top;
    if (this.#added > maxAdded) outer.inner += words;
    else outer.inner += blocks.has(entity.type) ? this.#onOwnLines(outer.inner, marked) : marked;
  }

  #onOwnLines(before: string, block: string): string {
    const isNext = this.#at >= this.#text.length || this.#text[this.#at] === '\n';
    return `${before === '' || before.endsWith('\n') ? '' : '\n'}${block}${isNext ? '' : '\n'}`;
  }
}
