import { z } from 'zod';
import { noId } from '#channel-kit/no-id.ts';
import { contentShape, originSchema } from './content-schema.ts';
import {
  chatSchema,
  date,
  entities,
  flag,
  listOf,
  longText,
  name,
  optionalId,
  part,
  strictId,
  textId,
  userSchema,
} from './fields.ts';

// The fields that Parley reads from an update. Unknown keys are dropped and broken fields are absent, so neither makes
// a message unreadable. Only ids by which access, identity or a migration is decided may refuse an update.

/** The id in a group's migration; it can't be that of a person or a private chat. */
const groupId = z.preprocess(noId, z.int().max(-1).optional());
/** A chat that speaks decides who the sender is, so one without an id must not be skipped. */
const speaker = z.preprocess(noId, chatSchema.optional());
/** Only the presence of these fields counts, so that no form of them but null and false hides a forward. */
const presence = z
  .unknown()
  .transform((value) => value !== undefined && value !== null && value !== false)
  .optional();

const commonShape = {
  message_id: strictId,
  date,
  edit_date: z.int().optional().catch(undefined),
  chat: chatSchema,
  from: part(userSchema),
  sender_chat: speaker,
  author_signature: name,
  message_thread_id: optionalId,
  is_topic_message: flag,
};

const quotedSchema = z.object({ ...commonShape, ...contentShape, forum_topic_created: presence });

export const messageSchema = z.object({
  ...commonShape,
  ...contentShape,
  reply_to_message: part(quotedSchema),
  reply_to_checklist_task_id: optionalId,
  reply_to_poll_option_id: textId,
  reply_to_story: contentShape.story,
  external_reply: part(z.object({ ...contentShape, origin: part(originSchema), message_id: optionalId })),
  quote: part(z.object({ text: longText, entities })),
  forward_origin: z.unknown().optional(),
  forward_date: presence,
  forward_from: presence,
  forward_from_chat: presence,
  forward_from_message_id: presence,
  forward_sender_name: presence,
  forward_signature: presence,
  is_automatic_forward: presence,
  is_from_offline: presence,
  via_bot: presence,
  sender_business_bot: presence,
  guest_bot_caller_user: presence,
  guest_bot_caller_chat: presence,
  media_group_id: textId,
  migrate_to_chat_id: groupId,
  migrate_from_chat_id: groupId,
  ephemeral_message_id: optionalId,
});

export const callbackSchema = z.object({
  id: z.string().max(128),
  from: userSchema,
  message: part(
    z.object({
      message_id: strictId,
      chat: chatSchema,
      message_thread_id: optionalId,
      is_topic_message: flag,
    }),
  ),
  data: z.string().max(1024).optional().catch(undefined),
});

const reactions = listOf(
  z.object({
    type: z.string().max(64),
    emoji: z.string().max(64).optional().catch(undefined),
    custom_emoji_id: textId,
  }),
  100,
);

export const reactionUpdateSchema = z.object({
  chat: chatSchema,
  message_id: strictId,
  user: part(userSchema),
  actor_chat: part(chatSchema),
  date,
  old_reaction: reactions,
  new_reaction: reactions,
});

export const membershipSchema = z.object({
  chat: chatSchema,
  from: userSchema,
  date,
  new_chat_member: part(z.object({ status: z.string().max(64), is_member: flag })),
});

export const stopSchema = z.object({
  chat: chatSchema,
  message_thread_id: optionalId,
  draft_id: strictId,
});

export type Message = z.output<typeof messageSchema>;
export type QuotedMessage = z.output<typeof quotedSchema>;
export type ExternalReply = NonNullable<Message['external_reply']>;
export type Reaction = NonNullable<z.output<typeof reactions>>[number];
