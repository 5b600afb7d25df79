import { type AgentId, agentId, type ConversationId } from '#contracts/ids.ts';
import type { SessionAddress } from './session-key-of.ts';

/** Sends what matches to an agent, as configured. Every field that is given must match. */
export type AgentBinding = {
  readonly agent: string;
  readonly channel?: string;
  /** The bot's own id on the network, or the account's name in the configuration. */
  readonly account?: string;
  /** A person, in their direct conversation with the bot. */
  readonly peer?: string;
  /** One chat, group or channel, by its platform id. */
  readonly conversation?: string;
  /** The guild, community or parent channel of a group. */
  readonly parent?: string;
};

/** Input of routing; an `InboundEnvelope` is one. */
export type RoutingInput = SessionAddress & {
  readonly chat: { readonly parent?: ConversationId };
  /** The name of the bot account in the configuration. */
  readonly accountName?: string | undefined;
};

/**
 * The agent of the most specific binding: exact peer or group > parent > account > channel > default.
 * Between equals the one that also names account or channel wins, then the one listed first.
 */
export function agentFor(
  event: RoutingInput,
  bindings: readonly AgentBinding[],
  defaultAgent: AgentId,
): AgentId {
  let best: AgentBinding | undefined;
  for (const binding of bindings) {
    if (!matches(binding, event)) continue;
    if (best === undefined || specificity(binding) > specificity(best)) best = binding;
  }
  return best === undefined ? defaultAgent : agentId(best.agent);
}

function matches(binding: AgentBinding, { route, chat, sender, accountName }: RoutingInput): boolean {
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

/** Each rank outweighs all below it together. */
function specificity({ peer, conversation, parent, account, channel }: AgentBinding): number {
  const isExact = peer !== undefined || conversation !== undefined;
  return (
    (isExact ? 8 : 0) +
    (parent === undefined ? 0 : 4) +
    (account === undefined ? 0 : 2) +
    (channel === undefined ? 0 : 1)
  );
}
