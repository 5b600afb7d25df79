import type { AgentId, ConversationId } from '#contracts/ids.ts';
import type { Binding } from '../config/config.ts';
import type { SessionAddress } from './session-key-of.ts';

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
