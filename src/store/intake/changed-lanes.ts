import type { NotNull } from 'kysely';
import type { Tx } from '../base/command.ts';
import type { Proposal } from './proposal.ts';

const changes: ReadonlySet<Proposal['decision']['kind']> = new Set([
  'edit',
  'unread-edit',
  'delete',
  'reaction',
]);

/**
 * Reads the keys of the lanes whose messages these events change, so that a batch locks them in order with its other
 * lanes. A single writer, as in SQLite, has no order to keep.
 */
export async function readChangedLanes(tx: Tx, proposals: readonly Proposal[]): Promise<readonly string[]> {
  const changing = proposals.filter(({ decision }) => changes.has(decision.kind));
  const messages = [...new Set(changing.flatMap(({ messageId }) => messageId ?? []))];
  if (tx.dialect !== 'postgres' || messages.length === 0) return [];
  const conversations = [...new Set(changing.map(({ conversationKey }) => conversationKey))];
  const remembered = tx.db
    .selectFrom('groupContext')
    .select('laneKey')
    .where('conversationKey', 'in', conversations)
    .where('messageId', 'in', messages);
  const ours = tx.db
    .selectFrom('receipts')
    .innerJoin('outbox', 'outbox.key', 'receipts.partKey')
    .select('outbox.laneKey')
    .where('receipts.conversationKey', 'in', conversations)
    .where('receipts.messageId', 'in', messages)
    .where('outbox.laneKey', 'is not', null)
    .$narrowType<{ laneKey: NotNull }>();
  const rows = await tx.db
    .selectFrom('inbox')
    .select('laneKey')
    .where('conversationKey', 'in', conversations)
    .where('messageId', 'in', messages)
    .union(remembered)
    .union(ours)
    .execute();
  return rows.map(({ laneKey }) => laneKey);
}
