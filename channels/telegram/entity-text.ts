/**
 * Text and its entities → the text as the model reads it: addresses behind words, code in fences, quotations, times.
 * Linear in the text and the entities, whatever they overlap.
 */
import type { MessageEntity } from 'grammy/types';
import type { Entity } from './fields.ts';
import { codeBlock, codeSpan, linkWords, quoteBlock, withName, withTime, wrapWords } from './markdown.ts';
import { nameOf } from './people.ts';

/** How one kind of entity shows; undefined: its words say everything. */
type Mark = ((words: string, entity: Entity) => string) | undefined;

const around = (mark: string) => (words: string) => wrapWords(words, mark);
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
