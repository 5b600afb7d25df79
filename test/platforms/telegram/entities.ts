import { badRequest, type TgEntity, type TgUser } from './types.ts';

const known = new Set(
  'mention hashtag cashtag bot_command url email phone_number bold italic underline strikethrough spoiler blockquote expandable_blockquote code pre text_link text_mention custom_emoji'.split(
    ' ',
  ),
);
const computed = new Set(['mention', 'hashtag', 'cashtag', 'bot_command', 'url', 'email', 'phone_number']);
const quotes = new Set(['blockquote', 'expandable_blockquote']);
const monospace = new Set(['code', 'pre']);

export type SentText = { readonly text: string; readonly entities: readonly TgEntity[] };

/**
 * Reads the text of a send as the platform does: checks the entities, trims white space at the ends, then checks the
 * length. `limit` is 4096 for texts, 1024 for captions.
 *
 * Stricter than the platform in one respect: the platform silently repairs entities with a forbidden overlap, while
 * this server refuses them, so that a test notices.
 */
export function readSentText(text: string, entities: unknown, limit: number): SentText {
  const checked = readEntities(entities);
  for (const entity of checked) checkBounds(text, entity);
  checkNesting(checked);
  const start = text.length - text.trimStart().length;
  const trimmed = text.trim();
  if (trimmed.length > limit)
    throw badRequest(limit === 1024 ? 'message caption is too long' : 'message is too long');
  const kept = checked.flatMap((entity) => {
    const from = Math.max(0, entity.offset - start);
    const to = Math.min(trimmed.length, entity.offset + entity.length - start);
    return to > from ? [{ ...entity, offset: from, length: to - from }] : [];
  });
  return { text: trimmed, entities: kept };
}

function readEntities(value: unknown): readonly TgEntity[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw badRequest("can't parse entities: Expected an Array of MessageEntity");
  return value.map((entity: unknown) => {
    if (typeof entity !== 'object' || entity === null)
      throw badRequest("can't parse MessageEntity: expected an Object");
    const { type, offset, length, url } = entity as Record<string, unknown>;
    if (typeof type !== 'string' || !known.has(type))
      throw badRequest("can't parse MessageEntity: Unsupported type specified");
    if (!Number.isInteger(offset) || !Number.isInteger(length))
      throw badRequest(`can't parse MessageEntity: Can't find field "offset" or "length"`);
    if (type === 'text_link' && !isHttpLike(url))
      throw badRequest(`entity URL '${String(url)}' is invalid: Wrong HTTP URL`);
    return entity as TgEntity;
  });
}

function isHttpLike(url: unknown): boolean {
  return typeof url === 'string' && /^(https?|tg|ton):\/\/\S+\.?\S*$/i.test(url);
}

function checkBounds(text: string, { offset, length }: TgEntity): void {
  const end = offset + length;
  if (offset < 0) throw badRequest('receive an entity with incorrect offset');
  if (length <= 0) throw badRequest('receive an entity with incorrect length');
  if (offset >= text.length)
    throw badRequest(`entity begins after the end of the text at UTF-16 offset ${offset}`);
  if (end > text.length)
    throw badRequest(
      `entity beginning at UTF-16 offset ${offset} ends after the end of the text at UTF-16 offset ${end}`,
    );
  if (isInsidePair(text, offset))
    throw badRequest(`entity begins in a middle of a UTF-16 symbol at byte offset ${offset}`);
  if (isInsidePair(text, end))
    throw badRequest(
      `entity beginning at UTF-16 offset ${offset} ends in a middle of a UTF-16 symbol at byte offset ${end}`,
    );
}

function isInsidePair(text: string, index: number): boolean {
  const before = text.charCodeAt(index - 1);
  const after = text.charCodeAt(index);
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}

/**
 * Checks the rules of "Formatting options": no partial overlap, only quotes together with code, no quote in a quote.
 */
function checkNesting(entities: readonly TgEntity[]): void {
  const sorted = [...entities].sort((a, b) => a.offset - b.offset || b.length - a.length);
  for (const [index, outer] of sorted.entries()) {
    for (const inner of sorted.slice(index + 1)) {
      const outerEnd = outer.offset + outer.length;
      if (inner.offset >= outerEnd) break;
      const clash = (why: string) =>
        badRequest(`can't parse entities: ${why} at UTF-16 offset ${inner.offset}`);
      if (inner.offset + inner.length > outerEnd) throw clash('entities overlap');
      if (quotes.has(outer.type) && quotes.has(inner.type)) throw clash('blockquote inside a blockquote');
      const isCode = monospace.has(outer.type) || monospace.has(inner.type);
      if (isCode && !quotes.has(outer.type) && !quotes.has(inner.type)) throw clash('entity beside code');
      if (outer.type === 'text_link' && inner.type === 'text_link') throw clash('link inside a link');
    }
  }
}

/** Finds what a client or the server recognizes in a text on its own: mentions, commands, links. */
export function findEntities(text: string, people: readonly TgUser[] = []): readonly TgEntity[] {
  const found: TgEntity[] = [];
  for (const match of text.matchAll(/(?<![\w@/])@[A-Za-z]\w{3,31}\b/g))
    found.push({ type: 'mention', offset: match.index, length: match[0].length });
  for (const match of text.matchAll(/(?<![\w/])\/\w{1,64}(@\w{3,32})?/g))
    found.push({ type: 'bot_command', offset: match.index, length: match[0].length });
  for (const match of text.matchAll(/https?:\/\/[^\s)]+/g))
    found.push({ type: 'url', offset: match.index, length: match[0].length });
  for (const user of people) {
    const offset = text.indexOf(user.first_name);
    if (offset >= 0) found.push({ type: 'text_mention', offset, length: user.first_name.length, user });
  }
  return found.sort((a, b) => a.offset - b.offset);
}

/** Returns the entities that the sender chose, and those that the platform computes. */
export function withComputed({ text, entities }: SentText): readonly TgEntity[] {
  const chosen = entities.filter((entity) => !computed.has(entity.type));
  const clashes = (entity: TgEntity) =>
    chosen.some(
      (one) => one.offset < entity.offset + entity.length && entity.offset < one.offset + one.length,
    );
  return [...chosen, ...findEntities(text).filter((entity) => !clashes(entity))].sort(
    (a, b) => a.offset - b.offset,
  );
}
