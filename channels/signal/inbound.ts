/**
 * Maps signal-cli's output to envelopes. Pure. Unreadable input throws inside; `readFrames` turns that into a raw row,
 * so that one bad message never holds up the others. Anything that isn't a person's doing (receipts, typing, timers,
 * other devices' bookkeeping) is dropped: there is far more of it than of messages.
 */
import { cleanText } from '#channel-kit/clean-text.ts';
import { keyOf, type UnreadableEvent, unreadableEvent, unsupported } from '#channel-kit/event-mapping.ts';
import { assertSafeJson, eventShape } from '#channel-kit/json-guard.ts';
import type { ChannelGap, InboundBatch } from '#contracts/channel.ts';
import type { InboundEnvelope, InboundEvent, InboundMessage, Sender } from '#contracts/envelope.ts';
import { conversationId, type MessageId, peerId } from '#contracts/ids.ts';
import {
  type Content,
  type Edit,
  envelopeSchema,
  namedSchema,
  notificationSchema,
  type SentMessage,
  type SignalEnvelope,
  senderSchema,
} from './envelope-schema.ts';
import { isGroupId, messageIdOf, readAci, routeOf } from './ids.ts';
import { type Names, readMessage } from './message-content.ts';

/** Facts that the messages themselves lack. */
export type Known = Names & {
  /** Returns the group with this id, as in messages. */
  groupOf(id: string): { readonly admins: ReadonlySet<string> } | undefined;
  /** Returns when the message was first sent: edits of edits, and reactions to them, may refer to a later version. */
  originalOf(ref: { readonly author: string; readonly timestamp: number }): number;
  /** Learns from an event before the next one is read, which may refer to it. */
  learn(envelope: InboundEnvelope): void;
};

export type ReadBatch = Required<Pick<InboundBatch, 'events' | 'unreadable'>> & {
  /** Groups whose members or permissions have changed, and who changed them. */
  readonly changedGroups: readonly GroupChange[];
};

export type GroupChange = { readonly group: string; readonly by: Sender };

type ReadResult =
  | { readonly kind: 'event'; readonly envelope: InboundEnvelope }
  | { readonly kind: 'group-changed'; readonly change: GroupChange }
  | { readonly kind: 'nothing' };

/**
 * Maps notifications as they came: a socket's frame, or `params` of a webhook's. `arrivals`: when each of them arrived
 * here, for those that don't say when Signal's server received them.
 */
export function readFrames(
  frames: readonly unknown[],
  known: Known,
  arrivals: readonly number[] = [],
): ReadBatch {
  const events: InboundEnvelope[] = [];
  const unreadable: UnreadableEvent[] = [];
  const changedGroups: GroupChange[] = [];
  for (const [index, frame] of frames.entries()) {
    try {
      const reading = readNotification(frame, known, arrivals[index]);
      if (reading.kind === 'event') {
        events.push(reading.envelope);
        known.learn(reading.envelope);
      }
      if (reading.kind === 'group-changed') changedGroups.push(reading.change);
    } catch (error) {
      const gap = explainException(frame);
      unreadable.push({ ...unreadableEvent(frame, error), ...namedIn(frame), ...(gap && { gap }) });
    }
  }
  return { events, unreadable, changedGroups };
}

/** Returns the id of a message that couldn't be read, as far as its envelope has one. */
function namedIn(frame: unknown): Pick<UnreadableEvent, 'messageId'> {
  const read = namedSchema.safeParse(frame).data?.envelope;
  const author = readAci(read?.sourceUuid);
  return read && author !== undefined
    ? { messageId: messageIdOf({ author, timestamp: read.timestamp }) }
    : {};
}

/** Joins batches that were read one after another. */
export function joinBatches(batches: readonly ReadBatch[]): ReadBatch {
  return {
    events: batches.flatMap(({ events }) => events),
    unreadable: batches.flatMap(({ unreadable }) => unreadable),
    changedGroups: batches.flatMap(({ changedGroups }) => changedGroups),
  };
}

const nothing: ReadResult = { kind: 'nothing' };

export function readNotification(frame: unknown, known: Known, arrivedAt?: number): ReadResult {
  assertSafeJson(frame, eventShape);
  const { account, envelope, exception } = notificationSchema.parse(frame);
  // The webhook receives the messages of every account on the server.
  if (account !== known.bot.number) return nothing;
  if (isReadAlready(exception?.type)) return nothing;
  if (exception) throw new Error(`signal-cli could not read it: ${exception.type ?? 'unknown'}`);
  const read = envelopeSchema.parse(envelope);
  const reading = readEnvelope(read, known);
  const receivedAt = read.serverReceivedTimestamp ?? arrivedAt;
  if (reading.kind !== 'event' || receivedAt === undefined) return reading;
  return { ...reading, envelope: { ...reading.envelope, receivedAt } };
}

function readEnvelope(envelope: SignalEnvelope, known: Known): ReadResult {
  const { dataMessage, editMessage, syncMessage, callMessage } = envelope;
  const timestamp = envelope.timestamp ?? dataMessage?.timestamp ?? editMessage?.dataMessage?.timestamp;
  if (timestamp == null) throw new Error('has no time');
  const actor = actorOf(envelope);
  const act = { actor, peer: actor.aci, timestamp, isOwn: actor.aci === known.bot.aci };
  if (dataMessage)
    return readContent(dataMessage, { ...act, timestamp: dataMessage.timestamp ?? timestamp }, known);
  if (editMessage) return readEdit(editMessage, act, known);
  if (syncMessage?.sentMessage) return readSent(syncMessage.sentMessage, act, known);
  const refuse = (name: string) =>
    eventIn(
      {},
      { ...act, isOwn: false },
      known,
      unsupported(name, { messageId: messageIdOf({ author: actor.aci, timestamp }) }),
    );
  if (callMessage?.offerMessage) return refuse('call');
  // Without a known record it has no place, so nobody is told; `why` has its name.
  const [unknown] = envelope.unknownPayloads;
  return unknown === undefined ? nothing : refuse(unknown);
}

type Actor = { readonly aci: string; readonly device: number; readonly name: string };

type Act = {
  readonly actor: Actor;
  /** The other end, if no group is given. */
  readonly peer: string;
  /** Identifies the message, together with the actor. */
  readonly timestamp: number;
  /** Written by this account, and not to itself. */
  readonly isOwn: boolean;
};

function actorOf({ sourceUuid, sourceDevice, sourceName, sourceNumber }: SignalEnvelope): Actor {
  const aci = readAci(sourceUuid);
  // Only an ACI is permanent: a number may belong to somebody else tomorrow.
  if (aci === undefined) throw new Error('has no sender with an ACI');
  return { aci, device: sourceDevice ?? 0, name: cleanText(sourceName || sourceNumber || '') };
}

/**
 * Reads a message sent by one of the account's other devices. A note to self is a message from the owner to the bot,
 * since they share one ACI on a linked account. Anything else is the owner's own conversation with others.
 */
function readSent(
  sent: SentMessage,
  { actor, timestamp }: Pick<Act, 'actor' | 'timestamp'>,
  known: Known,
): ReadResult {
  const peer = readAci(sent.destinationUuid);
  const group = sent.groupInfo ?? sent.editMessage?.dataMessage?.groupInfo;
  if (peer === undefined && !group) return nothing;
  const isNote = !group && peer === known.bot.aci;
  const act = { actor, peer: peer ?? actor.aci, timestamp: sent.timestamp ?? timestamp, isOwn: !isNote };
  return sent.editMessage ? readEdit(sent.editMessage, act, known) : readContent(sent, act, known);
}

function readContent(content: Content, act: Act, known: Known): ReadResult {
  const { groupInfo } = content;
  const event = eventOf(content, act, known);
  if (event !== undefined) return eventIn(content, act, known, event);
  if (groupInfo?.type !== 'UPDATE') return nothing;
  return { kind: 'group-changed', change: { group: groupInfo.groupId, by: senderOf(act, known) } };
}

/** Returns undefined if a person neither wrote anything nor did anything to a message. */
function eventOf(content: Content, act: Act, known: Known): InboundEvent | undefined {
  const { groupInfo } = content;
  const own = messageIdOf({ author: act.actor.aci, timestamp: act.timestamp });
  if (groupInfo && !isGroupId(groupInfo.groupId)) return unsupported('group-v1', { messageId: own });
  const change = changeOf(content, act, known);
  if (change !== undefined)
    return change === 'unclear' ? unsupported('change of an unknown message', { messageId: own }) : change;
  const message = readMessage(content, { author: act.actor.aci, timestamp: act.timestamp }, known);
  if (hasContent(message)) return message;
  if (content.storyContext != null) return unsupported('storyContext', { messageId: own });
  return message.unknownFields?.length && !content.isExpirationUpdate ? message : undefined;
}

/** Returns what a person did to a message; `unclear` if that message isn't named. */
function changeOf(content: Content, act: Act, known: Known): InboundEvent | 'unclear' | undefined {
  const { reaction, remoteDelete, adminDelete, groupInfo } = content;
  const { pollVote, pollTerminate, pinMessage, unpinMessage } = content;
  const own = act.actor.aci;
  const to = (
    author: string | null | undefined,
    at: number | null | undefined,
    then: (id: MessageId) => InboundEvent,
  ) => {
    const aci = readAci(author);
    return aci === undefined || at == null ? 'unclear' : then(targetOf(aci, at, known));
  };
  const did = (what: string) => (messageId: MessageId) => ({ kind: 'act', messageId, act: what }) as const;
  if (reaction) {
    const { targetAuthorUuid, targetSentTimestamp, emoji, isRemove } = reaction;
    if (!emoji) return 'unclear';
    const event = { kind: 'reaction', emoji: cleanText(emoji), isRemoved: isRemove === true } as const;
    return to(targetAuthorUuid, targetSentTimestamp, (messageId) => ({ ...event, messageId }));
  }
  if (remoteDelete) return to(own, remoteDelete.timestamp, (messageId) => ({ kind: 'delete', messageId }));
  if (adminDelete) {
    const isAdmin = known.groupOf(groupInfo?.groupId ?? '')?.admins.has(own) === true;
    return to(adminDelete.targetAuthorUuid, adminDelete.targetSentTimestamp, (messageId) => {
      return { kind: 'delete', messageId, ...(isAdmin && { isVouched: true }) };
    });
  }
  if (pollVote) return to(pollVote.authorUuid, pollVote.targetSentTimestamp, did(voteOf(pollVote)));
  if (pollTerminate) return to(own, pollTerminate.targetSentTimestamp, did('ended the poll in'));
  if (pinMessage) return to(pinMessage.targetAuthorUuid, pinMessage.targetSentTimestamp, did('pinned'));
  if (unpinMessage)
    return to(unpinMessage.targetAuthorUuid, unpinMessage.targetSentTimestamp, did('unpinned'));
  return undefined;
}

function voteOf({ optionIndexes = [] }: NonNullable<Content['pollVote']>): string {
  const numbers = optionIndexes.slice(0, 10).map((index) => index + 1);
  return numbers.length === 0 ? 'took back a vote in' : `voted for option ${numbers.join(', ')} of`;
}

function hasContent({ text, attachments, described = [] }: InboundMessage): boolean {
  return text !== '' || attachments.length > 0 || described.length > 0;
}

function readEdit({ targetSentTimestamp, dataMessage }: Edit, act: Act, known: Known): ReadResult {
  // Its group is part of the content, so without that it has no place.
  if (!dataMessage) throw new Error('is an edit without its content');
  const messageId = targetOf(act.actor.aci, targetSentTimestamp, known);
  const edit = { ...act, timestamp: dataMessage.timestamp ?? act.timestamp };
  const ref = { author: act.actor.aci, timestamp: edit.timestamp };
  const { text, described, unknownFields, provenance, attachments } = readMessage(dataMessage, ref, known);
  return eventIn(dataMessage, edit, known, {
    kind: 'edit',
    messageId,
    ...{ text, provenance },
    ...(described && { described }),
    ...(unknownFields && { unknownFields }),
    // Signal's edits change words; an edit without files keeps those of the message.
    ...(attachments.length > 0 && { attachments }),
  });
}

function targetOf(author: string, timestamp: number, known: Known): MessageId {
  return messageIdOf({ author, timestamp: known.originalOf({ author, timestamp }) });
}

type GroupFields = Partial<Pick<Content, 'groupInfo'>>;

function eventIn({ groupInfo }: GroupFields, act: Act, known: Known, event: InboundEvent): ReadResult {
  const { actor, peer, timestamp } = act;
  const group = groupInfo ? known.groupOf(groupInfo.groupId) : undefined;
  const isAdmin = group?.admins.has(actor.aci);
  const sender = { ...senderOf(act, known), ...(isAdmin !== undefined && { isAdmin }) };
  const replyTo = event.kind === 'message' ? { author: actor.aci, timestamp } : undefined;
  return {
    kind: 'event',
    envelope: {
      eventKey: keyOf(event.kind, actor.aci, actor.device, timestamp, ...versionOf(event)),
      sentAt: timestamp,
      route: routeOf(known.bot, groupInfo?.groupId ?? peer, replyTo),
      chat: { kind: groupInfo ? 'group' : 'dm' },
      sender,
      event,
    },
  };
}

function senderOf({ actor: { aci, name }, isOwn }: Act, known: Known): Sender {
  return { id: peerId(aci), name: name || known.nameOf(aci) || '', isBot: false, isSelf: isOwn };
}

/**
 * Returns what distinguishes two events of one kind that one device sent at the same time. The message they refer to
 * isn't part of it, because it may be known before a restart but not after.
 */
function versionOf(event: InboundEvent): readonly string[] {
  switch (event.kind) {
    case 'reaction':
      return [event.isRemoved ? 'off' : 'on', event.emoji];
    case 'unsupported':
      return [event.name];
    case 'act':
      return [event.act];
    default:
      return [];
  }
}

// Explains why signal-cli couldn't read a message; it only gives the class of its exception. Pure. A message that it
// can't decrypt is requested again from the sender's app. One from a person with a new key stays in its cache for 30
// days, and is delivered once that key is trusted.

/** The same message has been read before, or it is this device's own. */
const isReadAlready = (type: string | null | undefined) => /DuplicateMessage|SelfSend/.test(type ?? '');

const isNewKey = (type: string) => type.includes('UntrustedIdentity');
const isAboutKeys = (type: string) => /^Protocol|InvalidMessage|NoSession|InvalidKey/.test(type);

/** Returns what the owner and `why` are told; undefined if signal-cli reports no exception. */
function explainException(frame: unknown): ChannelGap | undefined {
  const { account, exception, envelope } = notificationSchema.safeParse(frame).data ?? {};
  if (!exception || account === undefined) return undefined;
  const { sourceUuid, sourceName, sourceNumber } = senderSchema.safeParse(envelope).data ?? {};
  const aci = readAci(sourceUuid);
  const name = cleanText(sourceName || sourceNumber || '').slice(0, 60) || 'somebody';
  const who = aci === undefined ? undefined : `${name} (signal:${aci})`;
  const type = cleanText(exception.type ?? '').slice(0, 60);
  if (isNewKey(type)) {
    const code = 'identity-changed';
    if (aci === undefined) return { code, reason: 'its sender has a new safety number' };
    const call = `PUT /v1/identities/${account}/trust/${aci}`;
    const reason = `${who} has a new safety number; to trust it: ${call} of signal-cli-rest-api`;
    return { conversation: conversationId(aci), code, reason };
  }
  const cause = type === '' ? '' : ` (${type})`;
  if (!isAboutKeys(type)) return { code: 'lost', reason: `signal-cli couldn't read it${cause}` };
  const from = who === undefined ? '' : `, from ${who}`;
  return { code: 'undecrypted', reason: `signal-cli couldn't decrypt it${cause}${from}` };
}
