/**
 * Gateway dispatches and history → envelopes. Pure. An event that can't be read becomes a raw row, so that it never
 * holds up the others; one that only echoes the bot's own calls is dropped.
 */
import { InteractionType, MessageType, PermissionsBitField } from 'discord.js';
import { cleanText } from '#channel-kit/clean-text.ts';
import {
  keyOf,
  nobody,
  type UnreadableEvent,
  unreadableEvent,
  unsupported,
} from '#channel-kit/event-mapping.ts';
import { assertSafeJson, eventShape, widestShape } from '#channel-kit/json-guard.ts';
import { OversizedJson } from '#channel-kit/read-json.ts';
import { remoteTime } from '#channel-kit/remote-number.ts';
import type { InboundEnvelope, InboundEvent, InboundMessage, Sender } from '#contracts/envelope.ts';
import { type MessageId, messageId } from '#contracts/ids.ts';
import type { ChannelLocation, Directory } from './directory.ts';
import { interactionTypes } from './event-fates.ts';
import { interactionMessage, isSnowflake, timeOf } from './ids.ts';
import { fateOf, type Names, readContent, readWritten } from './message-content.ts';
import {
  bulkDeleteSchema,
  deleteSchema,
  type Emoji,
  type Interaction,
  interactionSchema,
  type MemberWithUser,
  type Message,
  pollVoteSchema,
  reactionSchema,
  readMessageFields,
  updateSchema,
} from './payload-schema.ts';
import { isAdministrative, readPermissions, senderOf } from './permissions.ts';
import { provenanceOf } from './provenance.ts';
import { fieldsOf, idIn, latestIdIn } from './raw-fields.ts';
import type { RecentAuthors } from './recent.ts';

/** One event of the gateway, as it came. */
export type Dispatch = { readonly t: string; readonly d: unknown; readonly s: number };

/** Facts that the mapping needs besides the event. */
export type MappingContext = Names & {
  /** Identifies the gateway session, for events without their own time or version. */
  readonly session: string;
  /** When the event came, ms; for events without a time. */
  readonly receivedAt: number;
  readonly directory: Directory;
  readonly recent: Pick<RecentAuthors, 'answerOf' | 'authorOf' | 'person'>;
};

export type ReadResult =
  /** Nothing that people did, or nothing worth reporting. */
  | { readonly kind: 'nothing' }
  /** The bot's own message: no event, but history is known up to it. */
  | { readonly kind: 'own'; readonly place: ChannelLocation; readonly messageId: string }
  | {
      readonly kind: 'events';
      readonly place: ChannelLocation;
      readonly events: readonly InboundEnvelope[];
      /** The message up to which history is known, with these events. */
      readonly messageId?: string;
    }
  /** Too little is known about this channel; to be read again once it is known. */
  | { readonly kind: 'unplaced'; readonly channelId: string }
  | { readonly kind: 'unreadable'; readonly row: UnreadableEvent };

export function readDispatch(dispatch: Dispatch, around: MappingContext): ReadResult {
  try {
    assertSafeJson(dispatch.d, dispatch.t === 'GUILD_CREATE' ? widestShape : eventShape);
    return readKnown(dispatch, around);
  } catch (error) {
    return { kind: 'unreadable', row: unreadableRow(dispatch, around.session, error) };
  }
}

function readKnown({ t, d, s }: Dispatch, around: MappingContext): ReadResult {
  switch (t) {
    case 'MESSAGE_CREATE':
      return readNew(d, around);
    case 'MESSAGE_UPDATE':
      return readEdit(d, around);
    case 'MESSAGE_DELETE': {
      const { id, ...where } = deleteSchema.parse(d);
      return readDeletes([id], where, around);
    }
    case 'MESSAGE_DELETE_BULK': {
      const { ids, ...where } = bulkDeleteSchema.parse(d);
      return readDeletes(ids, where, around);
    }
    case 'MESSAGE_REACTION_ADD':
    case 'MESSAGE_REACTION_REMOVE':
      return readReaction(d, { around, s, isRemoved: t === 'MESSAGE_REACTION_REMOVE' });
    case 'MESSAGE_POLL_VOTE_ADD':
    case 'MESSAGE_POLL_VOTE_REMOVE':
      return readVote(d, { around, s, isRemoved: t === 'MESSAGE_POLL_VOTE_REMOVE' });
    case 'INTERACTION_CREATE':
      return readInteraction(interactionSchema.parse(d), around);
    default:
      return { kind: 'nothing' };
  }
}

/** Takes the place of an event's name for a message read from the history. */
const historic = 'history';

/** Reads a message of the history, whose place is known. */
export function readHistoric(data: unknown, place: ChannelLocation, around: MappingContext): ReadResult {
  try {
    assertSafeJson(data, eventShape);
    return readMessage(readMessageFields(data), place, around);
  } catch (error) {
    return { kind: 'unreadable', row: unreadableRow({ t: historic, d: data, s: 0 }, '', error) };
  }
}

function readNew(data: unknown, around: MappingContext): ReadResult {
  const message = readMessageFields(data);
  const place = around.directory.placeOf(message.channel_id);
  return place === undefined
    ? { kind: 'unplaced', channelId: message.channel_id }
    : readMessage(message, place, around);
}

function readMessage(message: Message, place: ChannelLocation, around: MappingContext): ReadResult {
  const { id, author } = message;
  if (author.id === around.bot.id) return { kind: 'own', place, messageId: id };
  const event = eventOf(message, place, around);
  const envelope = envelopeOf(place, {
    eventKey: keyOf('message', id),
    // The id contains the time too, but only ids made by Discord itself are sure to.
    sentAt: remoteTime(Date.parse(message.timestamp ?? '') || timeOf(id), around.receivedAt),
    receivedAt: remoteTime(timeOf(id), around.receivedAt),
    sender: authorOf(message, place, around),
    replyTo: messageId(id),
    event,
  });
  return { kind: 'events', place, events: [envelope], messageId: id };
}

/** Discord's own notes are refused by name, as are messages of which nothing can be read. */
function eventOf(message: Message, { guildId }: ChannelLocation, around: MappingContext): InboundEvent {
  const fate = fateOf(message);
  if (fate?.as === 'refused') return refused(message, fate.note);
  const content = readContent(message, guildId, around);
  if (message.type === MessageType.ThreadStarterMessage) return starterOf(content, message);
  const hasContent =
    content.text.trim() !== '' || content.attachments.length > 0 || content.described !== undefined;
  if (!hasContent && fate === undefined) return refused(message, 'nobody knows this kind yet');
  if (!hasContent && content.unknownFields === undefined) return refused(message, emptyReason);
  return fate?.as === 'background' ? { ...content, provenance: 'automated', startsNoRun: true } : content;
}

const emptyReason = 'it has no content; without Message Content Intent, Discord leaves it out';

function refused({ type, id }: Message, why: string): InboundEvent {
  return unsupported(`message-type-${type}: ${why}`, { messageId: messageId(id) });
}

/** The message that a thread hangs on is in another channel; in the thread it is quoted, and starts nothing. */
function starterOf(content: InboundMessage, message: Message): InboundEvent {
  if (content.quote === undefined) return refused(message, 'the first message of the thread is gone');
  return { ...content, described: [starterLine], provenance: 'quoted', startsNoRun: true };
}

const starterLine = '[This thread hangs on the quoted message.]';

function authorOf(message: Message, { guildId }: ChannelLocation, around: MappingContext): Sender {
  const { author, member, webhook_id: webhook } = message;
  const isAdmin = around.directory.isAdmin(guildId, author.id, member?.roles);
  const speaker = { user: author, nick: member?.nick, isWebhook: webhook, isAdmin };
  return senderOf(speaker, around.bot);
}

/** Discord also reports an update when it has unfurled a link; only one with an edit time is an edit. */
function readEdit(data: unknown, around: MappingContext): ReadResult {
  const { id, edited_timestamp: editedAt, channel_id: channelId } = updateSchema.parse(data);
  if (editedAt === undefined) return { kind: 'nothing' };
  const place = around.directory.placeOf(channelId);
  const known = around.recent.authorOf(id);
  const hasAuthor = idIn(fieldsOf(data).author) !== '';
  const sender = hasAuthor ? undefined : (known ?? (place && peerOf(place, around)) ?? nobody);
  // A partial update says what changed, but not what the message reads now.
  const message = readMessageFields({ ...fieldsOf(data), ...(sender && { author: { id: '0' } }) });
  if (message.author.id === around.bot.id || sender?.isSelf || isRefused(message)) return { kind: 'nothing' };
  if (place === undefined) return { kind: 'unplaced', channelId };
  const envelope = envelopeOf(place, {
    // As reported, in microseconds: two edits can fall into one millisecond.
    eventKey: keyOf('edit', id, cleanText(editedAt)),
    sentAt: remoteTime(Date.parse(editedAt), around.receivedAt),
    sender: sender ?? authorOf(message, place, around),
    replyTo: messageId(id),
    event: editOf(message, data, { place, around }),
  });
  return { kind: 'events', place, events: [envelope] };
}

function isRefused(message: Message): boolean {
  return fateOf(message)?.as === 'refused';
}

/**
 * A complete message names its words and its files. One that doesn't name its words was changed in another way, and
 * keeps them; one whose files aren't named, or can't be read, keeps those.
 */
function editOf(message: Message, data: unknown, { place, around }: Scene): InboundEvent {
  const head = { kind: 'edit', messageId: messageId(message.id), provenance: provenanceOf(message) } as const;
  const { content, attachments: files } = fieldsOf(data);
  const { unknownFields, attachments, ...words } = readWritten(message, place.guildId, around);
  const unread = unknownFields && { unknownFields };
  if (typeof content !== 'string') return { ...head, text: '', ...unread };
  const areFilesRead = Array.isArray(files) && (files.length === 0 || message.body.attachments.length > 0);
  return { ...head, ...words, ...unread, ...(areFilesRead && { attachments }) };
}

type Where = { readonly channel_id: string; readonly guild_id?: string | undefined };

/** Discord doesn't say who deleted a message; what counts is who wrote it. */
function readDeletes(ids: readonly string[], where: Where, around: MappingContext): ReadResult {
  const { channel_id: channelId } = where;
  const place = around.directory.placeOf(channelId);
  if (place === undefined) return { kind: 'unplaced', channelId };
  const foreign = ids.filter((id) => around.recent.authorOf(id)?.isSelf !== true);
  if (foreign.length === 0) return { kind: 'nothing' };
  const authors = foreign.map((id) => around.recent.authorOf(id) ?? peerOf(place, around));
  // In a direct channel, access depends on the other side, so it must be known.
  if (place.chat.kind === 'dm' && authors.includes(undefined)) return { kind: 'unplaced', channelId };
  const events = foreign.map((id, index) =>
    envelopeOf(place, {
      eventKey: keyOf('delete', id),
      sentAt: around.receivedAt,
      sender: authors[index] ?? nobody,
      replyTo: messageId(id),
      event: { kind: 'delete', messageId: messageId(id), isVouched: true },
    }),
  );
  return { kind: 'events', place, events };
}

function peerOf({ peer }: ChannelLocation, { bot }: MappingContext): Sender | undefined {
  return peer && senderOf({ user: peer }, bot);
}

type ReactionEvent = { readonly around: MappingContext; readonly s: number; readonly isRemoved: boolean };

/** Reactions have no time and no id, so the position in the gateway session tells identical ones apart. */
function readReaction(data: unknown, { around, s, isRemoved }: ReactionEvent): ReadResult {
  const reaction = reactionSchema.parse(data);
  const { user_id: userId, message_id: target, channel_id: channelId } = reaction;
  if (userId === around.bot.id) return { kind: 'nothing' };
  const place = around.directory.placeOf(channelId);
  if (place === undefined) return { kind: 'unplaced', channelId };
  const emoji = emojiOf(reaction.emoji);
  const change = isRemoved ? 'off' : 'on';
  const envelope = envelopeOf(place, {
    eventKey: keyOf('reaction', target, userId, emoji, change, around.session, s),
    sentAt: around.receivedAt,
    sender: reactorOf(userId, reaction.member, { place, around }),
    replyTo: messageId(target),
    event: { kind: 'reaction', messageId: messageId(target), emoji, isRemoved },
  });
  return { kind: 'events', place, events: [envelope] };
}

/** A vote has no id and no time, either. It is told as a reaction to the poll, with the answer's words if they are known. */
function readVote(data: unknown, { around, s, isRemoved }: ReactionEvent): ReadResult {
  const vote = pollVoteSchema.parse(data);
  const { user_id: userId, message_id: target, channel_id: channelId, answer_id: answer } = vote;
  if (userId === around.bot.id) return { kind: 'nothing' };
  const place = around.directory.placeOf(channelId);
  if (place === undefined) return { kind: 'unplaced', channelId };
  const change = isRemoved ? 'off' : 'on';
  const words = around.recent.answerOf(target, answer) ?? `answer ${answer}`;
  const envelope = envelopeOf(place, {
    eventKey: keyOf('vote', target, userId, answer, change, around.session, s),
    sentAt: around.receivedAt,
    sender: reactorOf(userId, undefined, { place, around }),
    replyTo: messageId(target),
    event: { kind: 'reaction', messageId: messageId(target), emoji: cleanText(`vote: ${words}`), isRemoved },
  });
  return { kind: 'events', place, events: [envelope] };
}

type Scene = { readonly place: ChannelLocation; readonly around: MappingContext };

function reactorOf(userId: string, member: MemberWithUser | undefined, { place, around }: Scene): Sender {
  const known = member?.user ?? (place.peer?.id === userId ? place.peer : around.recent.person(userId));
  const user = known ?? { id: userId, username: userId };
  const isAdmin = around.directory.isAdmin(place.guildId, userId, member?.roles);
  return senderOf({ user, nick: member?.nick, isAdmin }, around.bot);
}

/** Returns the emoji; custom ones by name, as in a text. */
function emojiOf({ id, name }: Emoji): string {
  return cleanText(id == null ? (name ?? '') : `:${name ?? id}:`);
}

/** Reads a button press, or a slash command: a message with the text `/name text`, answered through the interaction. */
function readInteraction(interaction: Interaction, around: MappingContext): ReadResult {
  const { id, type, channel_id: channelId, member } = interaction;
  const user = member?.user ?? interaction.user;
  if (channelId === undefined || user === undefined) throw new Error('names no channel or no user');
  const place = around.directory.placeOf(channelId);
  if (place === undefined) return { kind: 'unplaced', channelId };
  const isAdmin =
    member?.permissions === undefined
      ? undefined
      : isAdministrative(new PermissionsBitField(readPermissions(member.permissions)));
  const sender = senderOf({ user, nick: member?.nick, isAdmin }, around.bot);
  const common = { sentAt: remoteTime(timeOf(id), around.receivedAt), sender };
  const isCommand = type === InteractionType.ApplicationCommand;
  const envelope = envelopeOf(place, {
    ...common,
    eventKey: keyOf(isCommand ? 'interaction' : 'button', id),
    replyTo: isCommand ? interactionMessage.format(id) : messageId(interaction.message?.id ?? id),
    event: isCommand ? commandOf(interaction) : buttonOf(interaction),
  });
  return { kind: 'events', place, events: [envelope] };
}

function commandOf({ id, data }: Interaction): InboundEvent {
  const words = [`/${data?.name ?? ''}`, ...(data?.options ?? []).map(({ value }) => String(value ?? ''))];
  // Parley registers no message or user menu commands.
  if (data?.name === undefined || (data.type ?? 1) !== 1)
    return unsupported('context-menu-command: Parley registers none');
  return {
    kind: 'message',
    messageId: interactionMessage.format(id),
    text: cleanText(words.join(' ').trim()),
    // The sender typed it into the bot's own form.
    provenance: 'typed',
    attachments: [],
    mentionsBot: true,
    repliesToBot: false,
  };
}

function buttonOf({ type, data, message }: Interaction): InboundEvent {
  const { custom_id: pressed } = data ?? {};
  if (type !== InteractionType.MessageComponent || pressed === undefined || message === undefined)
    return unsupported(`interaction-type-${type}: ${refusalOf(type)}`);
  return { kind: 'button', messageId: messageId(message.id), data: cleanText(pressed) };
}

function refusalOf(type: number): string {
  const name = InteractionType[type];
  const fate = name === undefined ? undefined : interactionTypes[name as keyof typeof interactionTypes];
  if (fate === undefined) return 'nobody knows this kind yet';
  return fate.as === 'refused' ? fate.note : 'it doesn’t say what was used';
}

/** Returns the interaction id of a press; undefined for any other event. */
export function pressOf({ eventKey }: InboundEnvelope): string | undefined {
  return /^button:(\d{1,20})$/.exec(eventKey)?.[1];
}

type Known = Omit<InboundEnvelope, 'route' | 'chat'> & { readonly replyTo: MessageId };

function envelopeOf({ route, chat }: ChannelLocation, { replyTo, ...known }: Known): InboundEnvelope {
  return { ...known, route: { ...route, replyTo }, chat };
}

/** Returns an unreadable event as a row for the intake to keep raw. */
export function unreadableRow({ t, d, s }: Dispatch, session: string, error: unknown): UnreadableEvent {
  const isMessage = t === 'MESSAGE_CREATE' || t === historic;
  const id = isMessage && d instanceof OversizedJson ? latestIdIn(d) : idIn(d);
  // The gateway and the history serialize the same message differently.
  if (isMessage && isSnowflake(id)) return unreadableEvent({ t, d }, error, () => ['message', id]);
  const place = isSnowflake(id) ? [t, id] : [t, session, s];
  return unreadableEvent({ t, d }, error, (digest) => [...place, digest]);
}
