/**
 * Readers for single values of an update. They never fail: a value that is missing, null, moved or impossible is
 * absent, and costs nothing beside it. Only the ids that decide about access and identity are strict (`strictId`).
 */
import { z } from 'zod';
import { fitChars } from '#channel-kit/clean-text.ts';
import { noId } from '#channel-kit/no-id.ts';
import { remoteSize } from '#channel-kit/remote-number.ts';

export const strictId = z.int();
export const optionalId = z.preprocess(noId, strictId.optional()).catch(undefined);
/** An id in the form of a text, which other vendors' servers leave empty if there is none. */
export const textId = z.preprocess(noId, z.string().max(512).optional()).catch(undefined);
/** Seconds since the epoch; 0 counts as unknown. */
export const date = z.int().catch(0);
const sizeBytes = z.unknown().transform(remoteSize).optional();
export const flag = z.boolean().optional().catch(undefined);
export const quantity = z.number().optional().catch(undefined);

/** A text that is cut at `maxChars`. */
export const words = (maxChars: number) =>
  z
    .string()
    .transform((text) => fitChars(text, maxChars))
    .optional()
    .catch(undefined);
/** Far above the 4096 characters of a message and the 32,768 of a rich one. */
export const longText = words(65_536);
export const name = words(512);

/** An object that is absent if it can't be read. */
export const part = <Shape extends z.ZodType>(schema: Shape) =>
  z.preprocess(noId, schema.optional()).catch(undefined);

/** The readable members of a list. */
export const listOf = <Shape extends z.ZodType>(schema: Shape, maxMembers: number) =>
  z
    .array(z.unknown())
    .transform((all) =>
      all.slice(0, maxMembers).flatMap((one): z.output<Shape>[] => {
        const read = schema.safeParse(one);
        return read.success ? [read.data] : [];
      }),
    )
    .optional()
    .catch(undefined);

export const userSchema = z.object({
  id: strictId,
  is_bot: z.boolean().catch(false),
  first_name: name,
  last_name: name,
  username: name,
});

const chatTypes = ['private', 'group', 'supergroup', 'channel'] as const;

/** Private chats have positive ids; any other chat without a known type is read like a group. */
export const chatSchema = z
  .object({
    id: strictId,
    type: z.unknown(),
    title: name,
    first_name: name,
    last_name: name,
    username: name,
    is_direct_messages: flag,
  })
  .transform(({ type, ...chat }) => ({
    ...chat,
    type: chatTypes.find((known) => known === type) ?? (chat.id > 0 ? 'private' : 'supergroup'),
  }));

/** Telegram documents no limit for what a bot receives; this one bounds the work for an absurd update. */
const maxReadEntities = 2000;
const entitySchema = z.object({
  type: z.string().max(64),
  offset: z.int().min(0),
  length: z.int().min(0),
  url: z.string().max(4096).optional().catch(undefined),
  user: part(userSchema),
  language: words(64),
  unix_time: quantity,
});
/** An entity that can't be read marks nothing, and affects neither the others nor the text. */
export const entities = listOf(entitySchema, maxReadEntities);

export const fileSchema = z.object({
  file_id: z.string().min(1).max(512),
  /** The same for every bot and over time, so it tells whether a file was replaced. */
  file_unique_id: textId,
  file_size: sizeBytes,
  file_name: words(2048),
  mime_type: words(256),
});

export type User = z.output<typeof userSchema>;
export type TelegramChat = z.output<typeof chatSchema>;
export type Entity = z.output<typeof entitySchema>;
export type TelegramFile = z.output<typeof fileSchema>;
