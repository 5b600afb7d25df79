import type { Acceptance } from '#contracts/acceptance.ts';
import type { Tx } from '../base/command.ts';
import { ensureConversation } from '../delivery/insert-part.ts';
import { moveConversation, movedTo } from '../delivery/move-conversation.ts';
import { markReachable, markUnreachable } from '../delivery/reachability.ts';
import type { AcceptEventInput } from './accept-input.ts';
import type { Decision } from './proposal.ts';

type Migration = Extract<Decision, { kind: 'migrate' }>;
type Membership = Extract<Decision, { kind: 'membership' }>;

/**
 * Moves a conversation to its new id. Its session key is still derived from the first id, so the session, settings and
 * allow-list entry remain; unsent parts move along. Repeating it changes nothing.
 */
export async function migrateConversation(
  tx: Tx,
  accepting: AcceptEventInput,
  { from, to, toKey }: Migration,
): Promise<Acceptance> {
  await moveConversation(tx, { fromKey: accepting.proposal.conversationKey, from, toKey, to });
  accepting.effects.deliveries.push(toKey);
  return { kind: 'ignored', reason: 'migrated' };
}

export async function changeMembership(
  tx: Tx,
  accepting: AcceptEventInput,
  { isMember }: Membership,
): Promise<Acceptance> {
  const key = accepting.proposal.conversationKey;
  await ensureConversation(tx, key);
  // The bot leaves the old id of a group that has moved to another.
  if ((await movedTo(tx, key)) !== undefined) return { kind: 'ignored', reason: 'migrated' };
  if (isMember) await markReachable(tx, key);
  else await markUnreachable(tx, key);
  return { kind: 'ignored', reason: 'membership' };
}
