import { closeAlert, openAlert } from '../alerts/note-alert.ts';
import type { Tx } from '../base/command.ts';
import { isOpenItem, isOpenPart } from '../base/index-predicates.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { endItems } from '../rows/item-states.ts';
import { lockLane } from '../rows/lane-row.ts';
import { endAskedWait } from './asked-wait.ts';
import { amendOutcome } from './reply-outcome.ts';

/** Blocked or removed: queue and outbox of the conversation end with a recorded outcome. */
export async function markUnreachable(tx: Tx, key: string): Promise<void> {
  await lockLanesOf(tx, key);
  await tx.db.updateTable('conversations').set({ unreachableAt: tx.now }).where('key', '=', key).execute();
  await openAlert(tx, { kind: 'conversation-unreachable', subject: key });
  const open = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('conversationKey', '=', key)
    .where(isOpenItem())
    .execute();
  const ids = open.map(({ id }) => id);
  await endItems(tx, ids, { outcome: 'failed', outcomeReason: 'unreachable' });
  const ended = await tx.db
    .updateTable('outbox')
    .set({ state: 'failed', problem: 'the conversation is unreachable', endedAt: tx.now })
    .where('conversationKey', '=', key)
    .where(isOpenPart())
    .where('state', '=', 'pending')
    .returning(['runId', 'answer'])
    .execute();
  await endAskedWait(tx, key, true);
  for (const { runId, answer } of new Map(ended.map((part) => [part.answer, part])).values()) {
    if (runId !== null && answer !== null) await amendOutcome(tx, { runId, answer });
  }
}

/** The lanes of what waits there, in key order: a claim takes a waiting message, or finds it ended. */
async function lockLanesOf(tx: Tx, key: string): Promise<void> {
  const lanes = await tx.db
    .selectFrom('inbox')
    .select('laneKey')
    .distinct()
    .where('conversationKey', '=', key)
    .where(isOpenItem())
    .orderBy('laneKey')
    .execute();
  for (const { laneKey } of lanes) await lockLane(tx, laneKey);
}

/** Who writes can be written to, whatever an earlier failure said. */
export async function markReachable(tx: Tx, key: string): Promise<void> {
  const changed = await clearUnreachable.run(tx, { key });
  if (changed > 0) await closeAlert(tx, { kind: 'conversation-unreachable', subject: key });
}

const clearUnreachable = prepared((db, of: QueryParams<{ key: string }>) =>
  db
    .updateTable('conversations')
    .set({ unreachableAt: null })
    .where('key', '=', of.key)
    .where('unreachableAt', 'is not', null),
);
