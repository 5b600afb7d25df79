/**
 * Says whether a message calls the bot: by a mark of the platform, or by its user name, since some clients send a name
 * without marking it. In code and in addresses the name calls nobody.
 */
import type { Entity } from './fields.ts';
import type { Bot } from './ids.ts';

/** A mark that may call the bot, from a text's entities or from a rich message. */
export type Mention = {
  /** The kind of the mark: `mention`, `text_mention`, `bot_command` or `text_link`. */
  readonly type: string;
  readonly words: string;
  readonly user?: number;
  readonly url?: string;
};

/** Bounds the work for one text; people mark far less. */
const maxMarks = 200;
/** User names and commands have at most 32 characters each; a longer mark is neither. */
const longestMark = 80;

/** Offsets are UTF-16 code units, as JavaScript counts. */
export function mentionsIn(text: string, entities: readonly Entity[] = []): readonly Mention[] {
  return entities.slice(0, maxMarks).map(({ type, offset, length, user, url }) => ({
    type,
    words: text.slice(offset, offset + Math.min(length, longestMark)).trim(),
    ...(user && { user: user.id }),
    ...(url !== undefined && { url }),
  }));
}

/** Compares user names without regard to case. */
export function callsBot({ type, words, user, url = '' }: Mention, bot: Bot): boolean {
  switch (type) {
    case 'mention':
      return bot.username !== '' && isSameName(words, `@${bot.username}`);
    case 'text_mention':
      return user === bot.id;
    case 'text_link':
      // Some clients write a mention of somebody without a user name as a link to their id.
      return /^tg:\/\/user\/?\?id=\d+$/.test(url) && url.endsWith(`=${bot.id}`);
    case 'bot_command':
      return addresses(words, bot);
    default:
      return false;
  }
}

const notCalling: ReadonlySet<string> = new Set(['code', 'pre', 'url', 'text_link', 'email', 'bot_command']);
/** Where a name can't begin: inside a word, an address or a path. */
const insideWord = /[\w@/.+-]/;

/** Says whether the text contains `@name` as a word of its own. */
export function namesBot(text: string, entities: readonly Entity[], { username }: Bot): boolean {
  if (!/^\w+$/.test(username)) return false;
  const others = entities.slice(0, maxMarks).filter(({ type }) => notCalling.has(type));
  return [...text.matchAll(new RegExp(`@${username}(?!\\w)`, 'gi'))].slice(0, maxMarks).some(({ index }) => {
    const isOther = others.some(({ offset, length }) => offset <= index && index < offset + length);
    return !isOther && !insideWord.test(text[index - 1] ?? '');
  });
}

function addresses(command: string, bot: Bot): boolean {
  const at = command.indexOf('@');
  return at > 0 && bot.username !== '' && isSameName(command.slice(at + 1), bot.username);
}

function isSameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
