import { z } from 'zod';
import { noId } from '#channel-kit/no-id.ts';
import { remoteSize } from '#channel-kit/remote-number.ts';
import { isEmptyField, unknownFieldsOf, unknownPayloadsOf } from './field-fates.ts';

/**
 * The fields that Parley reads from signal-cli's output. A field that is null, absent or of another type makes a message
 * poorer, never unreadable; except for its times, its sender and its group, without which it has no place.
 */
const timestamp = z.int().min(0).max(8_640_000_000_000_000);
const maybeTime = timestamp.nullish().catch(undefined);
const id = z.preprocess(noId, z.string().max(128).nullish()).catch(undefined);
const name = z.string().max(512).nullish().catch(undefined);
const longText = z.string().max(262_144).nullish().catch(undefined);
const flag = z.boolean().nullish().catch(undefined);

/** Returns a list without the elements that can't be read. */
function listOf<Item extends z.ZodType>(item: Item, most: number) {
  return z
    .unknown()
    .transform((value): readonly z.output<Item>[] | undefined => {
      if (!Array.isArray(value)) return undefined;
      return value.slice(0, most).flatMap((one) => {
        const { success, data } = item.safeParse(one);
        return success ? [data] : [];
      });
    })
    .optional();
}

/** Returns a record, or undefined if it can't be read. */
function maybe<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object(shape).nullish().catch(undefined);
}

/** Returns what somebody did to a message; without any detail if those can't be read, so that it is refused by name. */
function change<Shape extends z.ZodRawShape>(shape: Shape) {
  const readable = (value: unknown) => {
    if (isEmptyField(value)) return undefined;
    return typeof value === 'object' && !Array.isArray(value) ? value : {};
  };
  return z.preprocess(readable, z.object(shape).optional());
}

const mentionSchema = z.object({ start: z.int().min(0), length: z.int().min(0), uuid: id, number: id });
const mentions = listOf(mentionSchema, 1000);

const fileId = z.preprocess(noId, z.string().max(512).nullish()).catch(undefined);
const attachmentShape = {
  id: fileId,
  contentType: z.string().max(256).nullish().catch(undefined),
  filename: z.string().max(2048).nullish().catch(undefined),
  size: z.unknown().transform(remoteSize).optional(),
  caption: longText,
  isVoiceNote: flag,
};
const attachmentSchema = z.object(attachmentShape);

const quotedFileSchema = z.object({
  contentType: attachmentShape.contentType,
  filename: attachmentShape.filename,
  thumbnail: maybe(attachmentShape),
});

const quoteShape = {
  id: maybeTime,
  authorUuid: id,
  authorNumber: id,
  text: longText,
  mentions,
  attachments: listOf(quotedFileSchema, 100),
};

const targetShape = { targetAuthorUuid: id, targetSentTimestamp: maybeTime };

/** Strict: a message of a group that isn't recognized as such would be answered in the wrong place. */
const groupInfoSchema = z.object({
  groupId: z.string().min(1).max(128),
  type: z.string().max(32).nullish().catch(undefined),
});

/** Drops a group with an empty id. */
function noGroup(value: unknown): unknown {
  const isNone = typeof value === 'object' && value !== null && 'groupId' in value && value.groupId === '';
  return isNone ? undefined : value;
}

const detail = z.object({ value: longText });
const contactSchema = z.object({
  name: maybe({ nickname: name, given: name, family: name, prefix: name, suffix: name, middle: name }),
  phone: listOf(detail, 20),
  email: listOf(detail, 20),
  address: listOf(z.object({ street: name, postcode: name, city: name, country: name }), 20),
  organization: name,
});

const contentShape = {
  message: longText,
  isExpirationUpdate: flag,
  viewOnce: flag,
  reaction: change({ ...targetShape, emoji: z.string().max(64).nullish().catch(undefined), isRemove: flag }),
  quote: maybe(quoteShape),
  mentions,
  attachments: listOf(attachmentSchema, 100),
  remoteDelete: change({ timestamp: maybeTime }),
  adminDelete: change(targetShape),
  groupInfo: z.preprocess(noGroup, groupInfoSchema.nullish()),
  sticker: maybe({ stickerId: z.int().nullish().catch(undefined) }),
  contacts: listOf(contactSchema, 20),
  payment: maybe({ note: longText }),
  previews: listOf(z.object({ url: longText, title: longText, description: longText }), 10),
  pollCreate: maybe({ question: longText, options: listOf(z.string().max(4096), 100), allowMultiple: flag }),
  pollVote: change({
    authorUuid: id,
    targetSentTimestamp: maybeTime,
    optionIndexes: listOf(z.int().min(0).max(1000), 100),
  }),
  pollTerminate: change({ targetSentTimestamp: maybeTime }),
  pinMessage: change(targetShape),
  unpinMessage: change(targetShape),
  /** Anything here makes it about a story, which is never its sender's own text. */
  storyContext: z.unknown().optional(),
  unknownFields: z.array(z.string()).readonly(),
};

/** Adds the names of fields that this version doesn't know. */
function withUnknown(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return { ...value, unknownFields: unknownFieldsOf(value) };
}

const dataSchema = z.preprocess(withUnknown, z.object({ ...contentShape, timestamp: maybeTime }));
const editSchema = z.object({ targetSentTimestamp: timestamp, dataMessage: dataSchema.nullish() });

/**
 * Messages of the account's other devices. Their fields are directly in `sentMessage`; older releases omit the time.
 */
const sentSchema = z.preprocess(
  withUnknown,
  z.object({
    ...contentShape,
    timestamp: maybeTime,
    destinationUuid: id,
    editMessage: editSchema.nullish(),
  }),
);

/** Who sent an envelope, whatever else it contains. */
export const senderSchema = z.object({ sourceUuid: id, sourceNumber: id, sourceName: name });

const envelopeFields = z.object({
  ...senderSchema.shape,
  sourceDevice: z.int().nullish().catch(undefined),
  timestamp: maybeTime,
  /** The time of Signal's server; older releases of signal-cli don't pass it on. Clamped by core. */
  serverReceivedTimestamp: z.number().nullish().catch(undefined),
  dataMessage: dataSchema.nullish(),
  editMessage: editSchema.nullish(),
  syncMessage: z.object({ sentMessage: sentSchema.nullish() }).nullish(),
  callMessage: maybe({ offerMessage: z.object({}).nullish() }),
  unknownPayloads: z.array(z.string()).readonly(),
});

/** Adds the names of payloads that this version doesn't know. */
export const envelopeSchema = z.preprocess(
  (value) =>
    typeof value === 'object' && value !== null
      ? { ...value, unknownPayloads: unknownPayloadsOf(value) }
      : value,
  envelopeFields,
);

/** One message of signal-cli: an envelope, the exception from reading it, or both. */
export const notificationSchema = z.object({
  account: z.string().max(128),
  envelope: z.unknown().optional(),
  exception: z.object({ message: longText, type: name }).nullish(),
});

/** The parts of a notification that name its message, for one that can't be read. */
export const namedSchema = z.object({ envelope: z.object({ sourceUuid: z.string(), timestamp }) });

export type SignalEnvelope = z.output<typeof envelopeSchema>;
export type DataMessage = z.output<typeof dataSchema>;
/** The content of a message, including one from another device of the same account. */
export type Content = Omit<DataMessage, 'timestamp'>;
export type Edit = z.output<typeof editSchema>;
export type SentMessage = z.output<typeof sentSchema>;
export type Mention = z.output<typeof mentionSchema>;
export type SharedContact = z.output<typeof contactSchema>;
export type SignalAttachment = z.output<typeof attachmentSchema>;
