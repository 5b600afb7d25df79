import type { ChannelId, ConversationId, PeerId } from '#contracts/ids.ts';
import { platformRef } from '../sessions/platform-ref.ts';

/**
 * Who may reach the agent. Plain data; people and groups are identified by `channel:id`, with the platform's immutable
 * ids. Display names never appear here, so none can be imitated.
 */
export type AccessPolicy = {
  readonly dmPolicy: DmPolicy;
  readonly groupPolicy: GroupPolicy;
  readonly owners: ReadonlySet<string>;
  /** People who may write directly. This doesn't apply to groups. */
  readonly allowFrom: ReadonlySet<string>;
  /** Groups, guilds or parent channels that are answered. */
  readonly allowGroups: ReadonlySet<string>;
  /** Groups that answer only these members and the owners; a group without an entry answers all. */
  readonly groupMembers: ReadonlyMap<string, ReadonlySet<string>>;
};

export type DmPolicy = 'pairing' | 'allowlist' | 'open' | 'disabled';
export type GroupPolicy = 'allowlist' | 'open' | 'disabled';

/** The part of the configuration that decides access. */
export type AccessSettings = {
  readonly owners: readonly string[];
  readonly access: {
    readonly dmPolicy: DmPolicy;
    readonly groupPolicy: GroupPolicy;
    readonly allowFrom: readonly string[];
    readonly allowGroups: readonly string[];
    readonly groups: {
      readonly [group: string]: { readonly allowFrom?: readonly string[] | undefined };
    };
  };
};

/** Builds the policy from the configuration. Naming a group under `groups` also allows it. */
export function accessPolicyFrom({ owners, access }: AccessSettings): AccessPolicy {
  const groupMembers = new Map<string, ReadonlySet<string>>();
  for (const [group, { allowFrom }] of Object.entries(access.groups)) {
    if (allowFrom !== undefined) groupMembers.set(group, new Set(allowFrom));
  }
  return {
    dmPolicy: access.dmPolicy,
    groupPolicy: access.groupPolicy,
    owners: new Set(owners),
    allowFrom: new Set(access.allowFrom),
    allowGroups: new Set([...access.allowGroups, ...Object.keys(access.groups)]),
    groupMembers,
  };
}

/** Says whether a set contains this person or group. An empty id is nobody, whatever the set contains. */
export function names(set: ReadonlySet<string>, channel: ChannelId, id: PeerId | ConversationId): boolean {
  return id !== '' && set.has(platformRef(channel, id));
}
