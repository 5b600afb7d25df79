import { z } from 'zod';
import { noId } from '#channel-kit/no-id.ts';
import { type Body, readBody } from './body-schema.ts';
import { isSnowflake } from './ids.ts';
import { fieldsOf, soft, softFlag, softId, softInt, softList, softText } from './raw-fields.ts';

/**
 * The fields that Parley reads from Discord's objects. Ids that access or order depends on are required; any other
 * field may be null, absent or wrong (`raw-fields.ts`), and unknown ones are dropped.
 */
const id = z.string().refine(isSnowflake, 'isn’t an id');
const optionalId = z.preprocess(noId, softId);
const name = softText(512);
const ids = softList(id, 1000);

export const userSchema = z.object({
  id,
  username: z.string().max(512).catch(''),
  global_name: name,
  /** Any value but false counts, since bots and the system have fewer rights. */
  bot: mark(),
  system: mark(),
});

function mark() {
  return z
    .unknown()
    .transform((value) => (value ? true : undefined))
    .optional();
}

const memberSchema = z.object({ nick: name, roles: ids });
const memberUserSchema = memberSchema.extend({ user: userSchema });

/** Replaces flags that can't be read: the message loses every permission that any flag would remove. */
const everyFlag = -1;
/** Replaces a type that can't be read: nobody knows whose words such a message contains. */
const unknownType = -1;

const placeShape = { channel_id: id, guild_id: optionalId };

const referenceSchema = z.object({ type: softInt, message_id: optionalId, channel_id: optionalId });

const mentionedSchema = softList(userSchema, 500);

/** The facts of a message. What it says is read by `readBody`. */
const factsSchema = z.object({
  id,
  ...placeShape,
  type: z.preprocess((type) => type ?? 0, z.int().catch(unknownType)),
  author: userSchema,
  member: soft(memberSchema),
  timestamp: softText(64),
  edited_timestamp: softText(64),
  /** Absent if Discord doesn't say who is mentioned. */
  mentions: soft(z.array(z.unknown()).transform((list) => mentionedSchema.parse(list))),
  mention_roles: softList(id, 500),
  flags: z.preprocess((flags) => flags ?? 0, z.int().catch(everyFlag)),
  /** Only the presence of these fields counts. */
  webhook_id: presence(),
  application_id: presence(),
  application: presence(),
  activity: presence(),
  interaction: presence(),
  interaction_metadata: presence(),
  message_snapshots: presence(),
  message_reference: soft(referenceSchema),
});

function presence() {
  return z
    .unknown()
    .optional()
    .transform((value) => noId(value) !== undefined && !(Array.isArray(value) && value.length === 0));
}

const quotedSchema = z.object({ id: softId, author: soft(userSchema) });

/** A message without the words; throws if an id is missing that access depends on. */
export type Message = z.output<typeof factsSchema> & {
  readonly body: Body;
  /** Null: it was deleted. Absent: Discord doesn't say. */
  readonly quoted?: QuotedMessage | null;
};

export type QuotedMessage = z.output<typeof quotedSchema> & { readonly body: Body };

export function readMessageFields(data: unknown): Message {
  const { referenced_message: quoted } = fieldsOf(data);
  const facts = factsSchema.parse(data);
  const body = readBody(data);
  if (quoted === null) return { ...facts, body, quoted };
  const known = quotedSchema.safeParse(quoted);
  return known.success
    ? { ...facts, body, quoted: { ...known.data, body: readBody(quoted) } }
    : { ...facts, body };
}

/** An update without an edit time isn't an edit: links were unfurled, a message was pinned, or a flag was set. */
export const updateSchema = z.object({ id, ...placeShape, edited_timestamp: softText(64) });

export const authoredSchema = factsSchema.pick({ id: true, author: true, webhook_id: true });

export const deleteSchema = z.object({ id, ...placeShape });
export const bulkDeleteSchema = z.object({
  ids: ids.refine((list) => list.length > 0, 'names no message'),
  ...placeShape,
});

export const reactionSchema = z.object({
  user_id: id,
  message_id: id,
  ...placeShape,
  member: soft(memberUserSchema),
  emoji: z.object({ id: optionalId, name }).catch({ id: undefined, name: undefined }),
});

export const pollVoteSchema = z.object({ user_id: id, message_id: id, answer_id: z.int(), ...placeShape });

export const channelSchema = z.object({
  id,
  type: z.int(),
  guild_id: optionalId,
  parent_id: optionalId,
  owner_id: optionalId,
  name,
  last_message_id: optionalId,
  recipients: softList(userSchema, 20),
  permission_overwrites: softList(
    z.object({ id, type: z.int(), allow: z.string().max(40), deny: z.string().max(40) }),
    2000,
  ),
});

const optionSchema = z.object({
  name: z.string().max(512),
  value: soft(z.union([z.string().max(8192), z.number(), z.boolean()])),
});

export const interactionSchema = z.object({
  id,
  application_id: optionalId,
  /** It becomes part of a path and of a line in a file. */
  token: z.string().regex(/^[\w.:=+~-]{1,2048}$/),
  type: z.int(),
  channel_id: optionalId,
  guild_id: optionalId,
  channel: soft(channelSchema.partial({ type: true })),
  user: soft(userSchema),
  member: soft(memberUserSchema.extend({ permissions: softText(40) })),
  message: soft(z.object({ id })),
  data: soft(
    z.object({
      name,
      type: softInt,
      custom_id: softText(512),
      options: softList(optionSchema, 50),
    }),
  ),
});

export const roleSchema = z.object({
  id,
  name: z.string().max(512).catch(''),
  permissions: z.string().max(40),
  tags: soft(z.object({ bot_id: optionalId })),
});

export const guildSchema = z.object({
  id,
  owner_id: optionalId,
  unavailable: softFlag,
  /** Absent from a partial report; a role that can't be read gives nobody any rights. */
  roles: soft(z.array(z.unknown()).transform(rolesIn)),
  channels: soft(z.array(z.unknown())),
  threads: soft(z.array(z.unknown())),
  members: soft(z.array(z.unknown())),
});

function rolesIn(roles: readonly unknown[]) {
  return roles.flatMap((role) => {
    const read = roleSchema.safeParse(role);
    return read.success ? [read.data] : [];
  });
}

/** A report of a guild that the bot is in. */
export const joiningSchema = z.object({
  id,
  owner_id: id,
  joined_at: z.string().max(64),
  system_channel_id: optionalId,
});

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
export type Emoji = z.output<typeof reactionSchema>['emoji'];
export type Interaction = z.output<typeof interactionSchema>;
export type Channel = z.output<typeof channelSchema>;
export type Role = z.output<typeof roleSchema>;
export { id as idSchema, memberUserSchema };
