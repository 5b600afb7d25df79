import { MessageFlags, MessageReferenceType, MessageType } from 'discord.js';
import { cleanText } from '#channel-kit/clean-text.ts';
import { fileKind } from '#channel-kit/event-mapping.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundMessage } from '#contracts/envelope.ts';
import { messageId } from '#contracts/ids.ts';
import { formatRef } from './attachment-ref.ts';
import type { Directory } from './directory.ts';
import type { Bot } from './ids.ts';
import type { Attachment, Message, QuotedMessage } from './payload-schema.ts';
import { nameOf } from './people.ts';
import { isForward, provenanceOf } from './provenance.ts';
import type { RecentAuthors } from './recent.ts';

/** The names shown in place of ids in a text; for display only. */
export type Names = {
  readonly bot: Bot;
  readonly directory: Pick<Directory, 'channelName' | 'isOwnRole' | 'roleName'>;
  readonly recent: Pick<RecentAuthors, 'authorOf'>;
};

/** Message types that people write: plain, a reply, and the line that another bot's command leaves. */
const readableTypes = new Set<MessageType>([
  MessageType.Default,
  MessageType.Reply,
  MessageType.ChatInputCommand,
  MessageType.ContextMenuCommand,
]);
const mostAttachments = 10;

/** Says whether people wrote the message: joins, pins, boosts, new threads and the like come from Discord itself. */
export function isReadable({ type }: Message): boolean {
  return readableTypes.has(type);
}

export function readContent(message: Message, guildId: string | undefined, names: Names): InboundMessage {
  const quote = quoteOf(message, names);
  const forwarded = forwardOf(message);
  const shown = forwarded ?? message;
  const from = message.message_reference?.channel_id;
  return {
    kind: 'message',
    messageId: messageId(message.id),
    text: forwarded === undefined ? textOf(message, guildId, names) : plainTextOf(forwarded),
    provenance: provenanceOf(message),
    attachments: attachmentsOf(shown, message),
    mentionsBot: mentionsBot(message, guildId, names),
    ...addresseeOf(message, names),
    ...(quote === undefined ? {} : { quote }),
    ...(forwarded === undefined ? {} : { forwardedFrom: originOf(from, names) }),
  };
}

/** Returns the text as people see it, with names in place of ids. A command after a mention of the bot comes first. */
export function textOf(message: Message, guildId: string | undefined, names: Names): string {
  const { bot } = names;
  const users = new Map(message.mentions.map((user) => [user.id, user]));
  const called = new RegExp(`^<@!?${bot.id}>\\s*(?=/)`);
  return plainTextOf(message)
    .replace(called, '')
    .replace(/<@!?(\d{1,20})>/g, (whole, id: string) => {
      const user = users.get(id);
      if (id === bot.id) return `@${bot.name}`;
      return user === undefined ? whole : `@${nameOf(user, user.member?.nick)}`;
    })
    .replace(
      /<@&(\d{1,20})>/g,
      (whole, id: string) => prefixed('@', names.directory.roleName(guildId, id)) ?? whole,
    )
    .replace(/<#(\d{1,20})>/g, (whole, id: string) => prefixed('#', names.directory.channelName(id)) ?? whole)
    .replace(/<a?:(\w{1,64}):\d{1,20}>/g, ':$1:')
    .replace(/<\/([^:<>]{1,100}):\d{1,20}>/g, '/$1');
}

function prefixed(sign: string, name: string | undefined): string | undefined {
  return name === undefined ? undefined : cleanText(`${sign}${name}`);
}

type Content = Pick<Message, 'content' | 'attachments' | 'sticker_items' | 'poll'>;

/** Returns the written text; other content is described in words. */
function plainTextOf({ content, sticker_items: stickers, poll }: Content): string {
  const words = [
    content,
    ...stickers.map(({ name }) => `[sticker: ${name}]`),
    ...(poll?.question.text ? [`[poll: ${poll.question.text}]`] : []),
  ];
  return cleanText(words.filter((part) => part !== '').join('\n'));
}

/** Returns a forwarded message, which is in the snapshot; Discord doesn't say who wrote it. */
function forwardOf(message: Message): Content | undefined {
  return isForward(message) ? message.message_snapshots?.[0]?.message : undefined;
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
  if (!message.mentions.some(({ id }) => id === bot.id)) return false;
  const isQuoted = message.referenced_message?.author.id === bot.id;
  return !isQuoted || new RegExp(`<@!?${bot.id}>`).test(message.content);
}

/** Says whether the message replies to the bot; if the original's author isn't known, says which message that is. */
function addresseeOf(
  message: Message,
  { bot, recent }: Names,
): Pick<InboundMessage, 'repliesToBot' | 'repliesTo'> {
  const target = repliedTo(message);
  if (target === undefined) return { repliesToBot: false };
  const author = message.referenced_message?.author.id;
  if (author !== undefined) return { repliesToBot: author === bot.id };
  const known = recent.authorOf(target);
  if (known !== undefined) return { repliesToBot: known.isSelf };
  return { repliesToBot: false, repliesTo: messageId(target) };
}

/**
 * Returns the id of the message replied to. Other implementations of Discord's API leave out the type of a reply, the
 * message that it quotes, or both.
 */
function repliedTo({ type, flags, channel_id: here, message_reference: reference, ...rest }: Message) {
  const isReply =
    type === MessageType.Reply ||
    (type === MessageType.Default && reference != null && (flags & MessageFlags.IsCrosspost) === 0);
  const isHere = (reference?.channel_id ?? here) === here;
  if (
    !isReply ||
    !isHere ||
    (reference?.type ?? MessageReferenceType.Default) !== MessageReferenceType.Default
  )
    return undefined;
  return rest.referenced_message?.id ?? reference?.message_id;
}

function quoteOf({ type, referenced_message: quoted }: Message, names: Names): InboundMessage['quote'] {
  if (type !== MessageType.Reply || quoted == null) return undefined;
  return {
    messageId: messageId(quoted.id),
    author: quoted.author.id === names.bot.id ? names.bot.name : nameOf(quoted.author),
    text: quotedText(quoted),
  };
}

function quotedText(quoted: QuotedMessage): string {
  const text = plainTextOf(quoted);
  return text === '' && quoted.attachments.length > 0 ? `[${quoted.attachments[0]?.filename}]` : text;
}

function attachmentsOf({ attachments }: Content, message: Message): readonly AttachmentRef[] {
  const isVoice = (message.flags & MessageFlags.IsVoiceMessage) !== 0;
  return attachments.slice(0, mostAttachments).map((one) => attachmentOf(one, message, isVoice));
}

function attachmentOf(attachment: Attachment, message: Message, isVoice: boolean): AttachmentRef {
  const { id, filename, size, content_type: mimeType, url } = attachment;
  return {
    ref: formatRef({ channel: message.channel_id, message: message.id, id, url }),
    kind: isVoice ? 'voice' : fileKind(mimeType),
    name: cleanText(filename),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(size === undefined ? {} : { sizeBytes: size }),
  };
}
