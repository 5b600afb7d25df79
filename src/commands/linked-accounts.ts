import { agentId } from '#contracts/ids.ts';
import { platformRef } from '../sessions/platform-ref.ts';
import { sessionKeyOf } from '../sessions/session-key-of.ts';
import type { CommandCall, CommandPolicy } from './chat-command.ts';

export type LinkedAccounts = {
  /** Every account of the person, `<channel>:<peer>`. */
  readonly people: readonly string[];
  /** Key of the lane that this account used before it was linked. */
  readonly formerLane: string;
};

/** Returns the sender's linked accounts; undefined in groups, and for an account that isn't linked. */
export function linkedAccounts(
  { dmScope }: CommandPolicy,
  { envelope, identities, lane }: CommandCall,
): LinkedAccounts | undefined {
  const { route, chat, sender } = envelope;
  const identity = chat.kind === 'dm' ? identities.get(platformRef(route.channel, sender.id)) : undefined;
  if (identity === undefined) return undefined;
  const settings = { agent: agentId(lane.agentId), dmScope, identityLinks: new Map<string, string>() };
  const formerLane = sessionKeyOf({ route, chat, sender }, settings);
  return { people: identities.accountsOf(identity).map(({ ref }) => ref), formerLane };
}
