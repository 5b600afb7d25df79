/**
 * The one gate for every kind of event, before any download, write, model call or reply. It checks, in this order:
 * unknown kinds; events of the platform itself; events of this and other bots; then the DM policy, or the group policy
 * and the group's members. It reads only immutable ids and the sender's stored role, and refuses whatever no rule
 * allows.
 */
import type { IgnoreReason, RefusalReason } from '#contracts/acceptance.ts';
import type { InboundEnvelope, InboundEvent } from '#contracts/envelope.ts';
import type { ChannelId, ConversationId, PeerId } from '#contracts/ids.ts';
import type { Authority } from '#contracts/outcome.ts';
import { platformRef } from '../sessions/identities.ts';
import type { Role, SenderRole } from '../store/access/sender-roles.ts';

export type AccessDecision =
  /**
   * An `owner` is named in the configuration or was approved as one. A `member` is a person or group member named on a
   * list, or was approved. A `guest` is admitted without any of that, by an open policy or an allowed group.
   */
  | { readonly kind: 'allowed'; readonly authority: Authority }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'ignored'; readonly reason: IgnoreReason };

/** The part of an envelope that decides access. It contains no names. */
export type AccessRequest = {
  readonly route: Pick<InboundEnvelope['route'], 'channel' | 'conversation'>;
  readonly chat: Pick<InboundEnvelope['chat'], 'kind' | 'parent'>;
  readonly sender: Pick<InboundEnvelope['sender'], 'id' | 'isBot' | 'isSelf'>;
  readonly event: { readonly kind: InboundEvent['kind'] };
  /** The sender's stored access, by bot account and immutable id. */
  readonly role: SenderRole;
  /** True if an owner has let this group in. */
  readonly isAdmitted?: boolean | undefined;
};

export function authorize(request: AccessRequest, policy: AccessPolicy): AccessDecision {
  const { sender, chat } = request;
  switch (eventOrigin(request.event.kind)) {
    case 'unknown':
      return refused('unsupported-event');
    case 'platform':
      // It has no author: a bot or an anonymous administrator may have caused it.
      return chat.kind === 'group' ? authorizePlace(request, policy) : authorizeDirect(request, policy);
    case 'person':
      if (sender.isSelf) return { kind: 'ignored', reason: 'own-message' };
      if (sender.isBot) return { kind: 'ignored', reason: 'bot-message' };
  }
  switch (chat.kind) {
    case 'dm':
      return authorizeDirect(request, policy);
    case 'group':
      return authorizeMember(request, policy);
    default:
      chat.kind satisfies never;
      return refused('unsupported-event');
  }
}

/** Returns who causes events of this kind. A kind that isn't listed is unknown, and unknown is denied. */
function eventOrigin(kind: InboundEvent['kind']): 'person' | 'platform' | 'unknown' {
  switch (kind) {
    case 'message':
    case 'edit':
    case 'delete':
    case 'reaction':
    case 'act':
    case 'button':
    case 'stop':
      return 'person';
    case 'migrated':
    case 'membership':
      return 'platform';
    case 'unsupported':
      return 'unknown';
    default:
      kind satisfies never;
      return 'unknown';
  }
}

/**
 * `pairing` admits everyone whom `allowlist` admits, plus approved people. Owners may always write, unless the policy
 * is unknown.
 */
function authorizeDirect(request: AccessRequest, policy: AccessPolicy): AccessDecision {
  const { route, sender, role } = request;
  const isOwner = isOwnerBy(request, policy);
  const isNamed = names(policy.allowFrom, route.channel, sender.id);
  switch (policy.dmPolicy) {
    case 'pairing':
      if (isOwner) return allowed('owner');
      if (isNamed || (role === 'user' && sender.id !== '')) return allowed('member');
      return refused(sender.id === '' ? 'dm-not-allowed' : 'dm-not-paired');
    case 'allowlist':
      if (isOwner) return allowed('owner');
      return isNamed ? allowed('member') : refused('dm-not-allowed');
    case 'open':
      if (sender.id === '') return refused('dm-not-allowed');
      return allowed(isOwner ? 'owner' : isNamed ? 'member' : 'guest');
    case 'disabled':
      return isOwner ? allowed('owner') : refused('dm-disabled');
    default:
      policy.dmPolicy satisfies never;
      return refused('dm-disabled');
  }
}

/**
 * Says whether the sender is an owner. An approval as owner applies to direct messages and to all groups that are
 * answered.
 */
export function isOwnerBy(
  { route, sender, role }: Pick<AccessRequest, 'route' | 'sender' | 'role'>,
  policy: AccessPolicy,
): boolean {
  return names(policy.owners, route.channel, sender.id) || (role === 'owner' && sender.id !== '');
}

/** Returns the authority of an account (`platformRef`) in a direct conversation. `role` is its stored role. */
export function authorityOf(ref: string, policy: AccessPolicy, role?: Role): Authority {
  if (policy.owners.has(ref) || role === 'owner') return 'owner';
  const isPaired = role === 'user' && policy.dmPolicy === 'pairing';
  return policy.allowFrom.has(ref) || isPaired ? 'member' : 'guest';
}

function authorizeMember(request: AccessRequest, policy: AccessPolicy): AccessDecision {
  const place = authorizePlace(request, policy);
  if (place.kind !== 'allowed') return place;
  const { route, chat, sender } = request;
  if (sender.id === '') return refused('sender-not-allowed');
  if (isOwnerBy(request, policy)) return allowed('owner');
  // A guild's list also applies to its channels, unless a channel has its own.
  const members =
    policy.groupMembers.get(platformRef(route.channel, route.conversation)) ??
    (chat.parent === undefined
      ? undefined
      : policy.groupMembers.get(platformRef(route.channel, chat.parent)));
  if (members === undefined) return place;
  return names(members, route.channel, sender.id) ? allowed('member') : refused('sender-not-allowed');
}

/** Decides whether this group is answered at all. A person's approval for direct messages never opens a group. */
function authorizePlace({ route, chat, isAdmitted }: AccessRequest, policy: AccessPolicy): AccessDecision {
  switch (policy.groupPolicy) {
    case 'allowlist': {
      const isNamed =
        isAdmitted === true ||
        names(policy.allowGroups, route.channel, route.conversation) ||
        (chat.parent !== undefined && names(policy.allowGroups, route.channel, chat.parent));
      return isNamed ? allowed('guest') : refused('group-not-allowed');
    }
    case 'open':
      return allowed('guest');
    case 'disabled':
      return refused('group-disabled');
    default:
      policy.groupPolicy satisfies never;
      return refused('group-disabled');
  }
}

function allowed(authority: Authority): AccessDecision {
  return { kind: 'allowed', authority };
}

function refused(reason: RefusalReason): AccessDecision {
  return { kind: 'refused', reason };
}

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

type DmPolicy = 'pairing' | 'allowlist' | 'open' | 'disabled';
type GroupPolicy = 'allowlist' | 'open' | 'disabled';

/** The part of the configuration that decides access. */
type AccessSettings = {
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
function names(set: ReadonlySet<string>, channel: ChannelId, id: PeerId | ConversationId): boolean {
  return id !== '' && set.has(platformRef(channel, id));
}
