/** Who may do what, computed as Discord documents it ("Permission Overwrites"). Pure. */
import { OverwriteType, PermissionFlagsBits } from 'discord.js';

export type Overwrite = {
  readonly id: string;
  readonly type: OverwriteType;
  readonly allow: bigint;
  readonly deny: bigint;
};

export type Holder = {
  readonly guildId: string;
  readonly ownerId: string | undefined;
  readonly userId: string;
  readonly roles: readonly string[];
  readonly permissionsOf: (roleId: string) => bigint;
};

const everything = (1n << 64n) - 1n;

/** A member's permissions in the whole guild. The role of everybody has the guild's id. */
export function guildPermissions({ guildId, ownerId, userId, roles, permissionsOf }: Holder): bigint {
  if (userId === ownerId) return everything;
  const all = [guildId, ...roles].reduce((sum, role) => sum | permissionsOf(role), 0n);
  return (all & PermissionFlagsBits.Administrator) === 0n ? all : everything;
}

/**
 * A member's permissions in a channel: everybody's overwrite, then the roles' together, then the member's own.
 */
export function channelPermissions(holder: Holder, overwrites: readonly Overwrite[]): bigint {
  const base = guildPermissions(holder);
  if (base === everything) return everything;
  const ofRoles = overwrites.filter(
    ({ id, type }) => type === OverwriteType.Role && id !== holder.guildId && holder.roles.includes(id),
  );
  const steps = [
    overwrites.filter(({ id, type }) => type === OverwriteType.Role && id === holder.guildId),
    ofRoles,
    overwrites.filter(({ id, type }) => type === OverwriteType.Member && id === holder.userId),
  ];
  return steps.reduce((allowed, step) => {
    const denied = step.reduce((sum, { deny }) => sum | deny, 0n);
    const granted = step.reduce((sum, { allow }) => sum | allow, 0n);
    return (allowed & ~denied) | granted;
  }, base);
}

/** Discord writes permissions as decimal text. */
export function readPermissions(text: string): bigint {
  return /^\d{1,40}$/.test(text) ? BigInt(text) : 0n;
}
