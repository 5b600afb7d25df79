import { z } from 'zod';
import { noId } from '#channel-kit/no-id.ts';
import { remoteSize } from '#channel-kit/remote-number.ts';
import { isSnowflake } from './ids.ts';

/**
 * The fields that Parley reads from Discord's objects. Unknown keys are dropped, so a new field never makes a message
 * unreadable; every field that is read has its type and size checked.
 */
const id = z.string().refine(isSnowflake, 'isn’t an id');
const optionalId = z.preprocess(noId, id.optional());
const name = z.string().max(512);
const longText = z.string().max(65_536);
const time = z.string().max(64);

export const userSchema = z.object({
  id,
  username: name,
  global_name: name.nullish(),
  bot: z.boolean().optional(),
  system: z.boolean().optional(),
});

const memberSchema = z.object({ nick: name.nullish(), roles: z.array(id).max(1000).default([]) });
const memberUserSchema = memberSchema.extend({ user: userSchema });

export const attachmentSchema = z.object({
  id,
  filename: z.string().max(2048).default('file'),
  size: z.unknown().transform(remoteSize),
  content_type: z.string().max(256).optional(),
  url: z.url({ protocol: /^https?$/ }).max(4096),
});

const contentShape = {
  content: longText.default(''),
  attachments: z.array(attachmentSchema).max(100).default([]),
  sticker_items: z.array(z.object({ name })).max(20).default([]),
  poll: z.object({ question: z.object({ text: longText.optional() }) }).nullish(),
};

/** Replaces flags that can't be read: the message loses every permission that any flag would remove. */
const everyFlag = -1;

const placeShape = { channel_id: id, guild_id: optionalId };

const quotedSchema = z.object({ id, author: userSchema, ...contentShape });

export const messageSchema = z.object({
  id,
  ...placeShape,
  ...contentShape,
  type: z.int().default(0),
  author: userSchema,
  member: memberSchema.optional(),
  timestamp: time,
  edited_timestamp: time.nullish(),
  mentions: z
    .array(userSchema.extend({ member: memberSchema.optional() }))
    .max(500)
    .default([]),
  mention_roles: z.array(id).max(500).default([]),
  flags: z.preprocess((flags) => flags ?? 0, z.int().catch(everyFlag)),
  webhook_id: optionalId,
  /** Only the presence of these fields counts. */
  application_id: z.unknown().optional(),
  application: z.unknown().optional(),
  activity: z.unknown().optional(),
  interaction: z.unknown().optional(),
  message_reference: z
    .object({ type: z.int().optional(), message_id: optionalId, channel_id: optionalId })
    .nullish(),
  referenced_message: quotedSchema.nullish(),
  message_snapshots: z
    .array(z.object({ message: z.object(contentShape) }))
    .max(10)
    .optional(),
  interaction_metadata: z.object({ id }).nullish(),
  nonce: z.union([z.string(), z.number()]).optional(),
});

/** An update without an edit time isn't an edit: links were unfurled, a message was pinned, or a flag was set. */
export const updateSchema = z.object({ id, ...placeShape, edited_timestamp: time.nullish() });

export const deleteSchema = z.object({ id, ...placeShape });
export const bulkDeleteSchema = z.object({ ids: z.array(id).max(1000), ...placeShape });

export const reactionSchema = z.object({
  user_id: id,
  message_id: id,
  ...placeShape,
  member: memberUserSchema.optional(),
  emoji: z.object({ id: optionalId, name: name.nullish() }),
});

export const channelSchema = z.object({
  id,
  type: z.int(),
  guild_id: optionalId,
  parent_id: optionalId,
  name: name.nullish(),
  last_message_id: optionalId,
  recipients: z.array(userSchema).max(20).optional(),
  permission_overwrites: z
    .array(z.object({ id, type: z.int(), allow: z.string().max(40), deny: z.string().max(40) }))
    .max(2000)
    .optional(),
});

export const interactionSchema = z.object({
  id,
  application_id: optionalId,
  /** It becomes part of a path and of a line in a file. */
  token: z.string().regex(/^[\w.:=+~-]{1,2048}$/),
  type: z.int(),
  channel_id: optionalId,
  guild_id: optionalId,
  channel: channelSchema.partial({ type: true }).optional(),
  user: userSchema.optional(),
  member: memberUserSchema.extend({ permissions: z.string().max(40).optional() }).optional(),
  message: z.object({ id }).optional(),
  data: z
    .object({
      name: name.optional(),
      type: z.int().optional(),
      custom_id: z.string().max(512).optional(),
      options: z
        .array(z.object({ name, value: z.union([z.string().max(8192), z.number(), z.boolean()]).optional() }))
        .max(50)
        .optional(),
    })
    .optional(),
});

export const roleSchema = z.object({
  id,
  name,
  permissions: z.string().max(40),
  tags: z.object({ bot_id: optionalId }).optional(),
});

export const guildSchema = z.object({
  id,
  owner_id: optionalId,
  unavailable: z.boolean().optional(),
  roles: z.array(roleSchema).optional(),
  channels: z.array(z.unknown()).optional(),
  threads: z.array(z.unknown()).optional(),
  members: z.array(z.unknown()).optional(),
});

/** A report of a guild that the bot is in. */
export const joiningSchema = z.object({ id, owner_id: id, joined_at: time, system_channel_id: optionalId });

export const readySchema = z.object({
  session_id: z.string().min(1).max(512),
  user: userSchema,
  guilds: z.array(z.object({ id })).default([]),
});

/** The numbers are clamped where they are used. */
export const gatewayBotSchema = z.object({
  url: z.string(),
  session_start_limit: z
    .object({ remaining: z.unknown(), reset_after: z.unknown() })
    .optional()
    .catch(undefined),
});

export type User = z.output<typeof userSchema>;
export type MemberWithUser = z.output<typeof memberUserSchema>;
export type Message = z.output<typeof messageSchema>;
export type QuotedMessage = z.output<typeof quotedSchema>;
export type Attachment = z.output<typeof attachmentSchema>;
export type Emoji = z.output<typeof reactionSchema>['emoji'];
export type Interaction = z.output<typeof interactionSchema>;
export type Channel = z.output<typeof channelSchema>;
export type Role = z.output<typeof roleSchema>;
export { id as idSchema, memberUserSchema };
