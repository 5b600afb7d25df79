/** Computes who may do what, as Discord documents it ("Permission Overwrites"). Pure. */
import { OverwriteType, PermissionFlagsBits, PermissionsBitField } from 'discord.js';
import { cleanText } from '#channel-kit/clean-text.ts';
import type { Sender } from '#contracts/envelope.ts';
import { peerId } from '#contracts/ids.ts';
import type { Bot } from './ids.ts';
import type { Channel, User } from './payload-schema.ts';

export type Overwrite = NonNullable<Channel['permission_overwrites']>[number];

export type Holder = {
  readonly guildId: string;
  readonly ownerId: string | undefined;
  readonly userId: string;
  readonly roles: readonly string[];
  readonly permissionsOf: (roleId: string) => bigint;
};

/** Returns a member's permissions in the guild as a whole. The @everyone role has the guild's id. */
export function guildPermissions(holder: Holder): PermissionsBitField {
  const { guildId, ownerId, userId, roles, permissionsOf } = holder;
  if (userId === ownerId) return new PermissionsBitField(PermissionsBitField.All);
  return new PermissionsBitField([guildId, ...roles].map(permissionsOf));
}

/**
 * Returns a member's permissions in a channel: the @everyone overwrite applies first, then those of the roles
 * together, then the member's own.
 */
export function channelPermissions(holder: Holder, overwrites: readonly Overwrite[]): PermissionsBitField {
  const { guildId, userId, roles } = holder;
  const may = guildPermissions(holder);
  if (may.has(PermissionFlagsBits.Administrator)) return may;
  const ofRoles = overwrites.filter(({ type }) => type === OverwriteType.Role);
  const steps = [
    ofRoles.filter(({ id }) => id === guildId),
    ofRoles.filter(({ id }) => id !== guildId && roles.includes(id)),
    overwrites.filter(({ id, type }) => type === OverwriteType.Member && id === userId),
  ];
  for (const step of steps)
    may
      .remove(step.map(({ deny }) => readPermissions(deny)))
      .add(step.map(({ allow }) => readPermissions(allow)));
  return may;
}

/** Says whether they administer the guild; to the library, Administrator includes every other permission. */
export function isAdministrative(permissions: PermissionsBitField): boolean {
  return permissions.has(PermissionFlagsBits.ManageGuild);
}

/** Discord writes permissions as decimal text. */
export function readPermissions(text: string): bigint {
  return /^\d{1,40}$/.test(text) ? BigInt(text) : 0n;
}

type Speaker = {
  readonly user: User;
  readonly nick?: string | null | undefined;
  /** Writes through a webhook, so it isn't a person's account. */
  readonly isWebhook?: boolean;
  readonly isAdmin?: boolean | undefined;
};

export function senderOf({ user, nick, isWebhook = false, isAdmin }: Speaker, bot: Bot): Sender {
  return {
    id: peerId(user.id),
    name: nameOf(user, nick),
    isBot: user.bot === true || isWebhook,
    isSelf: user.id === bot.id,
    ...(isAdmin === undefined ? {} : { isAdmin }),
  };
}

/** Returns the name that people see: the guild's nickname, else the profile's name, else the account's. */
function nameOf(user: User, nick?: string | null): string {
  return cleanText(nick || user.global_name || user.username);
}
