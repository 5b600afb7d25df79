/**
 * Telegram update → envelopes. Pure. An update that can't be read throws; `readBatch` turns that into a raw row, so
 * that one bad update never holds up the others. Keys identify what an event is about and don't use its update id,
 * because Telegram renumbers those after a week of silence. They include the chat because each supergroup numbers its
 * own messages.
 */

import { createHash } from 'node:crypto';
import { keyOf, nobody, unreadableEvent, unsupported } from '#channel-kit/event-mapping.ts';
import { assertSafeJson, eventShape } from '#channel-kit/json-guard.ts';
import { OversizedJson } from '#channel-kit/read-json.ts';
import { remoteTime } from '#channel-kit/remote-number.ts';
import type { InboundBatch } from '#contracts/channel.ts';
import type { Chat, InboundEnvelope, InboundEvent, Sender } from '#contracts/envelope.ts';
import { conversationId, type EventKey, messageId, threadId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { TelegramChat } from './fields.ts';
import { type Bot, telegram } from './ids.ts';
import { fateIn, refusalOf, smallKinds, updateKinds } from './inventory.ts';
import { presentFields, readContentEvent, readEditEvent, versionOf } from './message-content.ts';
import { anonymousSender, chatOf, senderOf } from './people.ts';
import {
  callbackSchema,
  type Message,
  membershipSchema,
  messageSchema,
  type Reaction,
  reactionUpdateSchema,
  stopSchema,
} from './update-schema.ts';

/** Always listed, because without a list the server keeps its previous setting. */
export const allowedUpdates = [
  'message',
  'edited_message',
  'callback_query',
  'message_reaction',
  'my_chat_member',
  'stopped_message_generation',
] as const;

/** Far above any of Telegram's ids; the offset after it still has no more than the 15 digits of a cursor. */
const highestUpdateId = 999_999_999_999_998;
export type ReadBatch = Required<Pick<InboundBatch, 'events' | 'unreadable'>> & {
  /** The next offset, past the highest id of this batch. Undefined if no update had an id. */
  readonly nextOffset: number | undefined;
};

/**
 * Maps a complete answer of `getUpdates`. The next offset comes from this batch alone, even if it is lower than before:
 * Telegram starts a new numbering after a week of silence, and an offset that only ever rises would then be ignored
 * forever and fetch the same updates in a hot loop.
 */
export function readBatch(updates: readonly unknown[], bot: Bot, receivedAt: number): ReadBatch {
  return joinBatches(updates.map((update) => readOne(update, bot, receivedAt)));
}

function readOne(update: unknown, bot: Bot, receivedAt: number): ReadBatch {
  const id = updateIdOf(update);
  const nextOffset = id === undefined ? undefined : id + 1;
  try {
    return { events: readUpdate(update, bot, receivedAt), unreadable: [], nextOffset };
  } catch (error) {
    const unreadable = [unreadableEvent(update, error, (digest) => [id ?? digest])];
    return { events: [], unreadable, nextOffset };
  }
}

/** Joins the batches of an answer that was read piece by piece. */
export function joinBatches(batches: readonly ReadBatch[]): ReadBatch {
  const offsets = batches.flatMap(({ nextOffset }) => nextOffset ?? []);
  return {
    events: batches.flatMap(({ events }) => events),
    unreadable: batches.flatMap(({ unreadable }) => unreadable),
    nextOffset: offsets.length === 0 ? undefined : Math.max(...offsets),
  };
}

/** Returns the envelopes of one update. `receivedAt` (ms) is used where Telegram gives no time. */
export function readUpdate(update: unknown, bot: Bot, receivedAt: number): readonly InboundEnvelope[] {
  return mapUpdate(update, bot, receivedAt).map((envelope) => {
    // Telegram's dates are from its server's clock.
    const sentAt = remoteTime(envelope.sentAt, receivedAt);
    return { ...envelope, sentAt, receivedAt: sentAt };
  });
}

function mapUpdate(update: unknown, bot: Bot, receivedAt: number): readonly InboundEnvelope[] {
  if (typeof update !== 'object' || update === null) throw new Error('not an object');
  assertSafeJson(update, eventShape);
  const id = updateIdOf(update);
  if (id === undefined) throw new Error('update_id is missing');
  const kind = kindOf(update);
  const body = (update as Record<string, unknown>)[kind];
  const context = { bot, receivedAt, updateId: id };
  switch (kind) {
    case 'message':
      return [readMessage(body, context)];
    case 'edited_message':
      return [readEdit(body, context)];
    case 'callback_query':
      return [readButton(body, context)];
    case 'message_reaction':
      return readReactions(body, context);
    case 'my_chat_member':
      return [readMembership(body, context)];
    case 'stopped_message_generation':
      return [readStop(body, context)];
    default:
      return [readUnknown(kind, body, context)];
  }
}

/** Returns the update's kind; a new field next to a known kind must not hide it. */
function kindOf(update: object): string {
  const has = (kind: string) => (update as Record<string, unknown>)[kind] != null;
  const known = allowedUpdates.find(has) ?? allowedUpdates.find((kind) => Object.hasOwn(update, kind));
  const others = Object.keys(update).filter((key) => key !== 'update_id');
  return known ?? others.find(has) ?? others[0] ?? 'empty';
}

type Context = { readonly bot: Bot; readonly receivedAt: number; readonly updateId: number };

function readMessage(body: unknown, context: Context): InboundEnvelope {
  const { bot } = context;
  const message = messageSchema.parse(body);
  const migration = readMigration(message, bot);
  if (migration !== undefined) return migration;
  const event = readContentEvent(message, body, bot);
  // An ephemeral message has no id of its own (0), so its update id identifies it.
  const number = message.message_id === 0 ? `update-${context.updateId}` : message.message_id;
  const eventKey = keyOf(event.kind === 'message' ? 'message' : 'service', message.chat.id, number);
  return envelopeOf(message, { bot, event, eventKey, sentAt: message.date * 1000 });
}

function readEdit(body: unknown, { bot, updateId }: Context): InboundEnvelope {
  const message = messageSchema.parse(body);
  const editedAt = message.edit_date ?? message.date;
  const event = readEditEvent(message, body, bot);
  // Two edits within one second share their date, so the content tells them apart.
  const version = createHash('sha256').update(versionOf(event)).digest('hex').slice(0, 12);
  const number = message.message_id === 0 ? `update-${updateId}` : message.message_id;
  const eventKey = keyOf('edit', message.chat.id, number, editedAt, version);
  return envelopeOf(message, { bot, event, eventKey, sentAt: editedAt * 1000 });
}

function readButton(body: unknown, { bot, receivedAt }: Context): InboundEnvelope {
  const { id, from, message, data } = callbackSchema.parse(body);
  const isReadable = message !== undefined && data !== undefined && message.chat.type !== 'channel';
  const event: InboundEvent = isReadable
    ? { kind: 'button', messageId: messageId(String(message.message_id)), data }
    : unsupported(`callback_query: ${pressRefusal(body)}`);
  return {
    eventKey: keyOf('button', id),
    sentAt: receivedAt,
    route: routeOf(bot, message?.chat.id ?? from.id, message),
    chat: message === undefined ? { kind: 'dm' } : chatOf(message.chat),
    sender: senderOf(from, bot),
    event,
  };
}

function pressRefusal(body: unknown): string {
  const reasons = presentFields(body).flatMap((field) => refusalOf(fateIn(smallKinds.press, field)) ?? []);
  return reasons[0] ?? 'it names no message or no button';
}

/** Returns the id of the query by which a press is answered; undefined for any other event. */
export function callbackOf({ event, eventKey }: InboundEnvelope): string | undefined {
  const isPress =
    event.kind === 'button' || (event.kind === 'unsupported' && event.name.startsWith('callback_query'));
  return isPress ? /^button:(\d{1,128})$/.exec(eventKey)?.[1] : undefined;
}

/** Returns one envelope for each emoji that was added or removed; one update may contain both. */
function readReactions(body: unknown, { bot, updateId }: Context): readonly InboundEnvelope[] {
  const update = reactionUpdateSchema.parse(body);
  const { chat, date, user, actor_chat: actorChat } = update;
  const sender = user === undefined ? anonymousSender(actorChat ?? chat, chat) : senderOf(user, bot);
  const before = (update.old_reaction ?? []).map(emojiOf);
  const after = (update.new_reaction ?? []).map(emojiOf);
  const changes = [
    ...before.filter((emoji) => !after.includes(emoji)).map((emoji) => ({ emoji, isRemoved: true })),
    ...after.filter((emoji) => !before.includes(emoji)).map((emoji) => ({ emoji, isRemoved: false })),
  ];
  const target = { message_id: update.message_id };
  const common = { sentAt: date * 1000, route: routeOf(bot, chat.id, target), chat: chatOf(chat), sender };
  const isPost = chat.type === 'channel';
  if (changes.length === 0 || isPost) {
    return [
      {
        ...common,
        eventKey: keyOf('update', updateId),
        event: unsupported(
          `message_reaction: ${isPost ? refusalOf(smallKinds.chat.channel) : 'nothing has changed in it'}`,
        ),
      },
    ];
  }
  // The same person may add it, remove it and add it again within one second.
  const about = [chat.id, update.message_id, sender.id, date, updateId] as const;
  return changes.map(({ emoji, isRemoved }) => ({
    ...common,
    eventKey: keyOf('reaction', ...about, isRemoved ? 'off' : 'on', emoji),
    event: { kind: 'reaction', messageId: messageId(String(update.message_id)), emoji, isRemoved },
  }));
}

function emojiOf(reaction: Reaction): string {
  return reaction.emoji ?? (reaction.custom_emoji_id ? `custom:${reaction.custom_emoji_id}` : reaction.type);
}

function readMembership(body: unknown, { bot, updateId }: Context): InboundEnvelope {
  const { chat, from, date, new_chat_member: now } = membershipSchema.parse(body);
  const isGone = now?.status === 'left' || now?.status === 'kicked';
  const isMember = !isGone && (now?.status !== 'restricted' || now.is_member !== false);
  return {
    eventKey: keyOf('membership', chat.id, date, now?.status ?? '', updateId),
    sentAt: date * 1000,
    route: routeOf(bot, chat.id),
    chat: chatOf(chat),
    sender: senderOf(from, bot),
    event:
      now === undefined || chat.type === 'channel'
        ? unsupported(
            `my_chat_member: ${now === undefined ? 'it names no state' : refusalOf(smallKinds.chat.channel)}`,
          )
        : { kind: 'membership', isMember },
  };
}

/** Telegram doesn't say who pressed Stop, but drafts only exist in private chats. */
function readStop(body: unknown, { bot, receivedAt, updateId }: Context): InboundEnvelope {
  const { chat, message_thread_id: topic, draft_id: draft } = stopSchema.parse(body);
  const { first_name, last_name, username } = chat;
  return {
    eventKey: keyOf('stop', chat.id, draft, updateId),
    sentAt: receivedAt,
    route: routeOf(
      bot,
      chat.id,
      topic === undefined ? undefined : { message_thread_id: topic, is_topic_message: true },
    ),
    chat: chatOf(chat),
    sender: senderOf({ id: chat.id, is_bot: false, first_name, last_name, username }, bot),
    event:
      chat.type === 'private'
        ? { kind: 'stop' }
        : unsupported('stopped_message_generation: drafts are only in private chats'),
  };
}

/** Both service messages of a migration report the same fact, so they share its key and the old id. */
function readMigration(message: Message, bot: Bot): InboundEnvelope | undefined {
  const { chat, migrate_to_chat_id: to, migrate_from_chat_id: from } = message;
  if (to === undefined && from === undefined) return undefined;
  const oldId = from ?? chat.id;
  const newId = to ?? chat.id;
  const event: InboundEvent = { kind: 'migrated', to: conversationId(String(newId)) };
  const envelope = envelopeOf(message, {
    bot,
    event,
    eventKey: keyOf('migrated', oldId, newId),
    sentAt: message.date * 1000,
  });
  return { ...envelope, route: routeOf(bot, oldId) };
}

/** Reads an update kind that Parley didn't ask for: from before the list last changed, or new. */
function readUnknown(kind: string, body: unknown, { bot, receivedAt, updateId }: Context): InboundEnvelope {
  const reason = refusalOf(fateIn(updateKinds, kind)) ?? 'this version of Parley doesn’t know it';
  const event = unsupported(`${kind}: ${reason}`);
  const message = messageSchema.safeParse(body);
  if (message.success && message.data.message_id !== 0) {
    const { chat, message_id: number, date, edit_date: edited = 0 } = message.data;
    return envelopeOf(message.data, {
      bot,
      event,
      eventKey: keyOf(kind, chat.id, number, edited),
      sentAt: date * 1000,
    });
  }
  return {
    eventKey: keyOf('update', updateId),
    sentAt: receivedAt,
    route: routeOf(bot, 0),
    chat: { kind: 'dm' },
    sender: nobody,
    event,
  };
}

function envelopeOf(
  message: Message,
  known: {
    readonly bot: Bot;
    readonly event: InboundEvent;
    readonly eventKey: EventKey;
    readonly sentAt: number;
  },
): InboundEnvelope {
  const { bot, event, eventKey, sentAt } = known;
  const chat: Chat = chatOf(message.chat);
  const sender: Sender =
    message.sender_chat !== undefined
      ? anonymousSender(message.sender_chat, message.chat, message.author_signature)
      : message.from === undefined
        ? nobody
        : senderOf(message.from, bot);
  return { eventKey, sentAt, route: routeOf(bot, message.chat.id, message), chat, sender, event };
}

type TopicFields = {
  readonly message_id?: number;
  readonly message_thread_id?: number | undefined;
  readonly is_topic_message?: boolean | undefined;
};

/** Plain reply chains in supergroups have a thread id too; only a topic's may be sent back. */
function routeOf(bot: Bot, chat: TelegramChat['id'], place: TopicFields = {}): ReplyRoute {
  const topic = place.is_topic_message ? place.message_thread_id : undefined;
  return {
    channel: telegram,
    account: bot.account,
    conversation: conversationId(String(chat)),
    ...(topic === undefined ? {} : { thread: threadId(String(topic)) }),
    ...(place.message_id === undefined || place.message_id === 0
      ? {}
      : { replyTo: messageId(String(place.message_id)) }),
  };
}

/** Returns the id of an update; undefined if it has none from which an offset can be made. */
export function updateIdOf(update: unknown): number | undefined {
  const id =
    update instanceof OversizedJson
      ? Number(/"update_id":\s*(\d{1,15})\b/.exec(update.text)?.[1])
      : typeof update === 'object' && update !== null && 'update_id' in update
        ? update.update_id
        : undefined;
  return typeof id === 'number' && Number.isInteger(id) && id >= 0 && id <= highestUpdateId ? id : undefined;
}
