/** Decides which conversation an event belongs to, by platform ids only, never by names (spec 2). */
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { type AgentId, type ConversationId, peerId, type SessionKey } from '#contracts/ids.ts';
import { type DirectKeyParts, formatSessionKey, type GroupKeyParts } from '#contracts/session-key.ts';
import type { Binding } from '../config/config.ts';
import { type IdentityLinks, platformRef } from './identities.ts';

/** How finely direct conversations are separated; each wider scope ignores one more segment. */
export type DmScope = 'per-account-channel-peer' | 'per-channel-peer' | 'per-peer' | 'main';

/** The part of an envelope that decides its conversation. */
export type SessionAddress = {
  readonly route: Pick<InboundEnvelope['route'], 'channel' | 'account' | 'conversation' | 'thread'>;
  readonly chat: Pick<InboundEnvelope['chat'], 'kind'>;
  readonly sender: Pick<InboundEnvelope['sender'], 'id'>;
};

export type SessionKeySettings = {
  readonly agent: AgentId;
  readonly dmScope: DmScope;
  readonly identityLinks: Pick<IdentityLinks, 'get'>;
};

/** Returns the session key of an event. Deterministic; throws ParleyError `invalid_input` for empty ids only. */
export function sessionKeyOf(event: SessionAddress, settings: SessionKeySettings): SessionKey {
  const within = event.chat.kind === 'group' ? groupParts(event, settings) : directParts(event, settings);
  const { thread } = event.route;
  return formatSessionKey(thread === undefined ? within : { kind: 'thread', within, thread });
}

function groupParts({ route }: SessionAddress, { agent }: SessionKeySettings): GroupKeyParts {
  const { account, channel, conversation } = route;
  return { kind: 'group', agent, account, channel, group: conversation };
}

function directParts({ route, sender }: SessionAddress, settings: SessionKeySettings): DirectKeyParts {
  const { agent, dmScope, identityLinks } = settings;
  const { account, channel } = route;
  const direct = { kind: 'direct', agent } as const;
  if (dmScope === 'main') return { ...direct, account: null, channel: null, peer: null };
  const identity = identityLinks.get(platformRef(channel, sender.id));
  if (identity !== undefined) return { ...direct, account: null, channel: null, peer: peerId(identity) };
  switch (dmScope) {
    case 'per-account-channel-peer':
      return { ...direct, account, channel, peer: sender.id };
    case 'per-channel-peer':
      return { ...direct, account: null, channel, peer: sender.id };
    case 'per-peer':
      return { ...direct, account: null, channel: null, peer: sender.id };
    default:
      return dmScope satisfies never;
  }
}

/** Input of routing; an `InboundEnvelope` is one. */
export type RoutingInput = SessionAddress & {
  readonly chat: { readonly parent?: ConversationId };
  /** The name of the bot account in the configuration. */
  readonly accountName?: string | undefined;
};

/**
 * Returns the agent of the most specific binding: exact peer or group > parent > account > channel > default. Among
 * equals, the one that also names the account or channel wins, then the one listed first.
 */
export function agentFor(event: RoutingInput, bindings: readonly Binding[], defaultAgent: AgentId): AgentId {
  let best: Binding | undefined;
  for (const binding of bindings) {
    if (!matches(binding, event)) continue;
    if (best === undefined || specificity(binding) > specificity(best)) best = binding;
  }
  return best === undefined ? defaultAgent : best.agent;
}

function matches(binding: Binding, { route, chat, sender, accountName }: RoutingInput): boolean {
  return (
    isAnyOr(binding.channel, route.channel) &&
    (isAnyOr(binding.account, route.account) || binding.account === accountName) &&
    isAnyOr(binding.peer, chat.kind === 'dm' ? sender.id : undefined) &&
    isAnyOr(binding.conversation, route.conversation) &&
    isAnyOr(binding.parent, chat.kind === 'group' ? chat.parent : undefined)
  );
}

function isAnyOr(wanted: string | undefined, actual: string | undefined): boolean {
  return wanted === undefined || wanted === actual;
}

/** Each rank outweighs all lower ones together. */
function specificity({ peer, conversation, parent, account, channel }: Binding): number {
  const isExact = peer !== undefined || conversation !== undefined;
  return (
    (isExact ? 8 : 0) +
    (parent === undefined ? 0 : 4) +
    (account === undefined ? 0 : 2) +
    (channel === undefined ? 0 : 1)
  );
}
