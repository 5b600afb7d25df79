/** Reads what a message says: its words with names in place of ids, what it quotes or forwards, and whom it addresses. */
import { MessageFlags, MessageReferenceType, MessageType } from 'discord.js';
import { cleanText } from '#channel-kit/clean-text.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundMessage, InboundQuote, InboundWords } from '#contracts/envelope.ts';
import { messageId } from '#contracts/ids.ts';
import { formatRef } from './attachment-ref.ts';
import type { Body } from './body-schema.ts';
import { type MediaLink, readWords, type Words } from './describe-body.ts';
import type { Directory } from './directory.ts';
import { type MessageFate, messageTypes } from './event-fates.ts';
import type { Bot } from './ids.ts';
import type { Message } from './payload-schema.ts';
import { isForward, provenanceOf } from './provenance.ts';
import type { RecentAuthors } from './recent.ts';

/** The names shown in place of ids in a text; for display only. */
export type Names = {
  readonly bot: Bot;
  readonly directory: Pick<Directory, 'channelName' | 'isOwnRole' | 'roleName'>;
  readonly recent: Pick<RecentAuthors, 'authorOf'>;
};

/** Limits the files of a message, and those of the quoted one. Core fetches fewer, and says which it leaves out. */
const maxFiles = 40;

/** Returns what becomes of a message of this type; undefined for a type that nobody knows. */
export function fateOf({ type }: Pick<Message, 'type'>): MessageFate | undefined {
  const name = MessageType[type];
  return name === undefined ? undefined : messageTypes[name as keyof typeof messageTypes];
}

export function readContent(message: Message, guildId: string | undefined, names: Names): InboundMessage {
  const quote = quoteOf(message, guildId, names);
  const from = message.message_reference?.channel_id;
  return {
    kind: 'message',
    messageId: messageId(message.id),
    ...readWritten(message, guildId, names),
    provenance: provenanceOf(message),
    mentionsBot: mentionsBot(message, guildId, names),
    ...addresseeOf(message, names),
    ...(quote === undefined ? {} : { quote }),
    ...(isForward(message) && { forwardedFrom: originOf(from, names) }),
  };
}

type Written = InboundWords & { readonly attachments: readonly AttachmentRef[] };

/** Returns the words and files of a message, of a forward those of its snapshot. A command after a mention comes first. */
export function readWritten(message: Message, guildId: string | undefined, names: Names): Written {
  const { body, id, channel_id: channel } = message;
  const called = new RegExp(`^<@!?${names.bot.id}>\\s*(?=/)`);
  const content = body.content?.replace(called, '');
  const words = readWords({ ...body, content }, (each) => namingFor(each, guildId, names));
  return { ...wordsOf(words), attachments: filesOf(words, { channel, message: id }) };
}

function wordsOf({ text, lines, unknownFields }: Words): InboundWords {
  return {
    text: cleanText(text),
    ...(lines.length > 0 && { described: lines.map(cleanText) }),
    ...(unknownFields.length > 0 && { unknownFields: unknownFields.map(cleanText) }),
  };
}

/** Returns a function that puts the names that people see in place of ids. */
function namingFor(body: Body, guildId: string | undefined, { bot, directory }: Names) {
  const users = new Map(body.mentions.map((user) => [user.id, user]));
  const channels = new Map(body.mention_channels.map(({ id, name }) => [id, name]));
  return (text: string): string =>
    text
      .replace(/<@!?(\d{1,20})>/g, (whole, id: string) => {
        const user = users.get(id);
        if (id === bot.id) return `@${bot.name}`;
        const name = user && (user.member?.nick || user.global_name || user.username);
        return prefixed('@', name) ?? whole;
      })
      .replace(
        /<@&(\d{1,20})>/g,
        (whole, id: string) => prefixed('@', directory.roleName(guildId, id)) ?? whole,
      )
      .replace(
        /<#(\d{1,20})>/g,
        (whole, id: string) => prefixed('#', directory.channelName(id) ?? channels.get(id)) ?? whole,
      )
      .replace(/<a?:(\w{1,64}):\d{1,20}>/g, ':$1:')
      .replace(/<\/([^:<>]{1,100}):\d{1,20}>/g, '/$1');
}

function prefixed(sign: string, name: string | undefined): string | undefined {
  return name ? cleanText(`${sign}${name}`) : undefined;
}

function originOf(channelId: string | undefined, names: Names): string {
  return prefixed('#', names.directory.channelName(channelId ?? '')) ?? 'another conversation';
}

/**
 * Says whether the bot is mentioned. If a reply pings, Discord lists the author of the quoted message among the
 * mentions; that is a reply, not a mention. @everyone is neither.
 */
function mentionsBot(message: Message, guildId: string | undefined, names: Names): boolean {
  const { bot } = names;
  if (message.mention_roles.some((id) => names.directory.isOwnRole(guildId, id))) return true;
  const isWritten = new RegExp(`<@!?${bot.id}>`).test(message.body.content ?? '');
  if (message.mentions === undefined) return isWritten;
  if (!message.mentions.some(({ id }) => id === bot.id)) return false;
  const isQuoted = message.quoted?.author?.id === bot.id;
  return !isQuoted || isWritten;
}

/** Says whether the message replies to the bot; if the original's author isn't known, says which message that is. */
function addresseeOf(
  message: Message,
  { bot, recent }: Names,
): Pick<InboundMessage, 'repliesToBot' | 'repliesTo'> {
  const target = repliedTo(message);
  if (target === undefined) return { repliesToBot: false };
  const author = message.quoted?.author?.id;
  if (author !== undefined) return { repliesToBot: author === bot.id };
  const known = recent.authorOf(target);
  if (known !== undefined) return { repliesToBot: known.isSelf };
  return { repliesToBot: false, repliesTo: messageId(target) };
}

/**
 * Returns the id of the message replied to. Other implementations of Discord's API leave out the type of a reply, the
 * message that it quotes, or both.
 */
function repliedTo({ type, flags, channel_id: here, message_reference: reference, quoted }: Message) {
  const isReply =
    type === MessageType.Reply ||
    (type === MessageType.Default && reference !== undefined && (flags & MessageFlags.IsCrosspost) === 0);
  const isHere = (reference?.channel_id ?? here) === here;
  const isReference = (reference?.type ?? MessageReferenceType.Default) === MessageReferenceType.Default;
  if (!isReply || !isHere || !isReference) return undefined;
  return quoted?.id ?? reference?.message_id;
}

/** Types of messages that point at another one, whose words Discord adds. */
const quotingTypes = new Set<number>([
  MessageType.Reply,
  MessageType.ChatInputCommand,
  MessageType.ContextMenuCommand,
  MessageType.ThreadStarterMessage,
]);

function quoteOf(message: Message, guildId: string | undefined, names: Names): InboundQuote | undefined {
  const { type, quoted, message_reference: reference, channel_id: here } = message;
  if (!quotingTypes.has(type) || quoted == null) return undefined;
  const id = quoted.id ?? reference?.message_id;
  const words = readWords(quoted.body, (each) => namingFor(each, guildId, names));
  const at = { channel: reference?.channel_id ?? here, message: id ?? '0' };
  const attachments = filesOf(words, at);
  return {
    ...(id !== undefined && { messageId: messageId(id) }),
    ...authorOfQuote(quoted, names),
    ...wordsOf(words),
    ...(attachments.length > 0 && { attachments }),
  };
}

function authorOfQuote({ author }: NonNullable<Message['quoted']>, { bot }: Names): { author?: string } {
  if (author === undefined) return {};
  const name = author.id === bot.id ? bot.name : author.global_name || author.username;
  return name === '' ? {} : { author: cleanText(name) };
}

type Place = { readonly channel: string; readonly message: string };

/** The same file may be shown twice, as an upload and in a component. */
function filesOf({ media }: Words, place: Place): readonly AttachmentRef[] {
  const all = media.map((link) => fileOf(link, place));
  const first = new Map(all.map((file) => [`${file.fileId} ${file.name}`, file]));
  return [...first.values()].slice(0, maxFiles);
}

/** The link of an uploaded file is signed again each time it is read, so its id says which file it is. */
function fileOf(link: MediaLink, { channel, message }: Place): AttachmentRef {
  const { id, kind, name = 'file', mimeType, sizeBytes, url } = link;
  return {
    ref: formatRef({ channel, message, id: id ?? '0', url }),
    fileId: id ?? pathOf(url),
    kind,
    name: cleanText(name),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(sizeBytes === undefined ? {} : { sizeBytes }),
  };
}

function pathOf(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? url : parsed.origin + parsed.pathname;
}
