import { z } from 'zod';
import { noId } from '#channel-kit/no-id.ts';
import { remoteSize } from '#channel-kit/remote-number.ts';

/**
 * The fields that Parley reads from signal-cli's output. Unknown keys are dropped and null counts as absent, so a new
 * field never makes a message unreadable; every field that is read has its type and size checked.
 */
const timestamp = z.int().min(0).max(8_640_000_000_000_000);
const id = z.preprocess(noId, z.string().max(128).nullish());
const name = z.string().max(512).nullish();
const longText = z.string().max(262_144).nullish();

const range = { start: z.int().min(0), length: z.int().min(0) };
const mentionSchema = z.object({ ...range, uuid: id, number: id });

const attachmentSchema = z.object({
  id: z.preprocess(noId, z.string().max(512).nullish()),
  contentType: z.string().max(256).nullish(),
  filename: z.string().max(2048).nullish(),
  size: z.unknown().transform(remoteSize).optional(),
});

const quoteSchema = z.object({
  id: timestamp,
  authorUuid: id,
  text: longText,
  mentions: z.array(mentionSchema).max(1000).nullish(),
});

const targetSchema = z.object({ targetAuthorUuid: id, targetSentTimestamp: timestamp });

const groupInfoSchema = z.object({
  groupId: z.string().min(1).max(128),
  revision: z.int().nullish(),
  type: z.string().max(32).nullish(),
});

/** Drops a group with an empty id. */
function noGroup(value: unknown): unknown {
  const isNone = typeof value === 'object' && value !== null && 'groupId' in value && value.groupId === '';
  return isNone ? undefined : value;
}

const contentShape = {
  message: longText,
  isExpirationUpdate: z.boolean().nullish(),
  reaction: targetSchema.extend({ emoji: z.string().max(64).nullish(), isRemove: z.boolean() }).nullish(),
  quote: quoteSchema.nullish(),
  mentions: z.array(mentionSchema).max(1000).nullish(),
  attachments: z.array(attachmentSchema).max(100).nullish(),
  remoteDelete: z.object({ timestamp }).nullish(),
  adminDelete: targetSchema.nullish(),
  groupInfo: z.preprocess(noGroup, groupInfoSchema.nullish()),
  sticker: z.object({}).nullish(),
  contacts: z.array(z.unknown()).nullish(),
  payment: z.unknown().optional(),
  pollCreate: z.unknown().optional(),
  storyContext: z.object({}).nullish(),
};

const dataSchema = z.object({ ...contentShape, timestamp });
const editSchema = z.object({ targetSentTimestamp: timestamp, dataMessage: dataSchema.nullish() });

/**
 * Messages of the account's other devices. Their fields are directly in `sentMessage`; older releases omit the time.
 */
const sentSchema = z.object({
  ...contentShape,
  timestamp: timestamp.nullish(),
  destinationUuid: id,
  editMessage: editSchema.nullish(),
});

export const envelopeSchema = z.object({
  sourceUuid: id,
  sourceNumber: id,
  sourceName: name,
  sourceDevice: z.int().nullish(),
  timestamp,
  /** The time of Signal's server; older releases of signal-cli don't pass it on. Clamped by core. */
  serverReceivedTimestamp: z.number().nullish().catch(undefined),
  dataMessage: dataSchema.nullish(),
  editMessage: editSchema.nullish(),
  syncMessage: z.object({ sentMessage: sentSchema.nullish() }).nullish(),
  callMessage: z.object({ offerMessage: z.object({}).nullish() }).nullish(),
});

/** One message of signal-cli: an envelope, the exception from reading it, or both. */
export const notificationSchema = z.object({
  account: z.string().max(128),
  envelope: z.unknown().optional(),
  exception: z.object({ message: longText, type: name }).nullish(),
});

export type SignalEnvelope = z.output<typeof envelopeSchema>;
export type DataMessage = z.output<typeof dataSchema>;
/** The content of a message, including one from another device of the same account. */
export type Content = Omit<DataMessage, 'timestamp'>;
export type Edit = z.output<typeof editSchema>;
export type SentMessage = z.output<typeof sentSchema>;
export type Mention = z.output<typeof mentionSchema>;
export type SignalAttachment = z.output<typeof attachmentSchema>;
