import { z } from 'zod';
import { noId } from '#channel-kit/no-id.ts';
import { remoteSize } from '#channel-kit/remote-number.ts';

/**
 * The fields that Parley reads from an update. Unknown keys are dropped, so a new field never makes a message
 * unreadable; every field that is read has its type and size checked.
 */
const id = z.int();
const optionalId = z.preprocess(noId, id.optional());
const name = z.string().max(512);
const longText = z.string().max(65_536);
/** Seconds since the epoch. An invalid date must not cost the message; 0 counts as unknown. */
const date = z.int().catch(0);
const sizeBytes = z.unknown().transform(remoteSize).optional();
/** The id in a group's migration; it can't be that of a person or a private chat. */
const groupId = z.int().max(-1);

const userSchema = z.object({
  id,
  is_bot: z.boolean().default(false),
  first_name: name.default(''),
  last_name: name.optional(),
  username: name.optional(),
});

const chatSchema = z.object({
  id,
  type: z.enum(['private', 'group', 'supergroup', 'channel']),
  title: name.optional(),
  first_name: name.optional(),
  last_name: name.optional(),
  username: name.optional(),
  is_forum: z.boolean().optional(),
  is_direct_messages: z.boolean().optional(),
});

const entitySchema = z.object({
  type: z.string().max(64),
  offset: z.int().min(0),
  length: z.int().min(0),
  user: userSchema.optional(),
});
const mostEntities = 2000;
/** An entity that can't be read marks nothing, and affects neither the others nor the text. */
const entities = z
  .array(z.unknown())
  .transform((all) =>
    all.slice(0, mostEntities).flatMap((one) => {
      const entity = entitySchema.safeParse(one);
      return entity.success ? [entity.data] : [];
    }),
  )
  .optional()
  .catch(undefined);

const fileSchema = z.object({
  file_id: z.string().max(512),
  file_size: sizeBytes,
  file_name: z.string().max(2048).optional(),
  mime_type: z.string().max(256).optional(),
});

const originSchema = z.object({
  type: z.string().max(64),
  sender_user: userSchema.optional(),
  sender_user_name: name.optional(),
  sender_chat: chatSchema.optional(),
  chat: chatSchema.optional(),
  message_id: optionalId,
});

const stickerSchema = fileSchema.extend({
  /** Used as a text, so it may only contain emoji. */
  emoji: z
    .string()
    .max(64)
    .regex(/^[\p{Emoji}\p{Emoji_Component}]*$/u)
    .optional()
    .catch(undefined),
  is_animated: z.boolean().optional(),
  is_video: z.boolean().optional(),
});

const locationSchema = z.object({
  latitude: z.number(),
  longitude: z.number(),
  /** Present while the moving location is still being shared. */
  live_period: z.unknown().optional(),
});

const contentShape = {
  text: longText.optional(),
  entities,
  caption: longText.optional(),
  caption_entities: entities,
  photo: z.array(fileSchema).max(50).optional(),
  voice: fileSchema.optional(),
  audio: fileSchema.optional(),
  video: fileSchema.optional(),
  video_note: fileSchema.optional(),
  animation: fileSchema.optional(),
  document: fileSchema.optional(),
  sticker: stickerSchema.optional(),
  location: locationSchema.optional(),
  venue: z.object({ title: name, address: name }).optional(),
};

const commonShape = {
  message_id: id,
  date,
  edit_date: z.int().optional().catch(undefined),
  chat: chatSchema,
  from: userSchema.optional(),
  sender_chat: chatSchema.optional(),
  author_signature: name.optional(),
  message_thread_id: optionalId.catch(undefined),
  is_topic_message: z.boolean().optional(),
};

const quotedSchema = z.object({
  ...commonShape,
  ...contentShape,
  forum_topic_created: z.unknown().optional(),
});

export const messageSchema = z.object({
  ...commonShape,
  ...contentShape,
  reply_to_message: quotedSchema.optional(),
  external_reply: z.object({ origin: originSchema, message_id: optionalId }).optional(),
  quote: z.object({ text: longText }).optional(),
  forward_origin: originSchema.optional(),
  /** Only the presence of these fields counts, so that no form of them hides a forward. */
  forward_date: z.unknown().optional(),
  forward_from: z.unknown().optional(),
  forward_from_chat: z.unknown().optional(),
  forward_from_message_id: z.unknown().optional(),
  forward_sender_name: z.unknown().optional(),
  forward_signature: z.unknown().optional(),
  is_automatic_forward: z.boolean().optional(),
  is_from_offline: z.boolean().optional(),
  via_bot: z.unknown().optional(),
  sender_business_bot: z.unknown().optional(),
  guest_bot_caller_user: z.unknown().optional(),
  guest_bot_caller_chat: z.unknown().optional(),
  media_group_id: z.preprocess(noId, z.string().max(128).optional()).catch(undefined),
  migrate_to_chat_id: z.preprocess(noId, groupId.optional()),
  migrate_from_chat_id: z.preprocess(noId, groupId.optional()),
  ephemeral_message_id: optionalId,
});

export const callbackSchema = z.object({
  id: z.string().max(128),
  from: userSchema,
  message: z
    .object({
      message_id: id,
      chat: chatSchema,
      message_thread_id: optionalId,
      is_topic_message: z.boolean().optional(),
    })
    .optional(),
  data: z.string().max(1024).optional(),
});

const reactionSchema = z.object({
  type: z.string().max(64),
  emoji: z.string().max(64).optional(),
  custom_emoji_id: z.preprocess(noId, z.string().max(128).optional()),
});

export const reactionUpdateSchema = z.object({
  chat: chatSchema,
  message_id: id,
  user: userSchema.optional(),
  actor_chat: chatSchema.optional(),
  date,
  old_reaction: z.array(reactionSchema).max(100),
  new_reaction: z.array(reactionSchema).max(100),
});

export const membershipSchema = z.object({
  chat: chatSchema,
  from: userSchema,
  date,
  new_chat_member: z.object({ status: z.string().max(64), is_member: z.boolean().optional() }),
});

export const stopSchema = z.object({
  chat: chatSchema,
  message_thread_id: optionalId,
  draft_id: id,
});

export type User = z.output<typeof userSchema>;
export type TelegramChat = z.output<typeof chatSchema>;
export type Message = z.output<typeof messageSchema>;
export type QuotedMessage = z.output<typeof quotedSchema>;
export type Origin = z.output<typeof originSchema>;
export type Entity = z.output<typeof entitySchema>;
export type TelegramFile = z.output<typeof fileSchema>;
export type Reaction = z.output<typeof reactionSchema>;
