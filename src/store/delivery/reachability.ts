import { closeAlert, openAlert } from '../alerts/note-alert.ts';
import type { Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { oneOf } from '../base/one-of.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow } from '../base/row-by-key.ts';
import { endSummaries } from '../rows/end-summaries.ts';
import { endItems } from '../rows/item-states.ts';
import { tryLockLanes } from '../rows/lane-row.ts';
import { endAskedWait } from './asked-wait.ts';
import { failUnreachable } from './part-states.ts';
import { amendOutcome } from './reply-outcome.ts';

/**
 * Marks a conversation from which the bot was blocked or removed: its waiting items and pending parts end with a
 * recorded outcome. The caller has locked the lanes that `readWaitingLanes` returned. A lane added since is skipped if
 * another step has locked it: its items are answered, and the answer is recorded as failed.
 */
export async function markUnreachable(tx: Tx, key: string): Promise<void> {
  const lanes = await tryLockLanes(tx, await readWaitingLanes(tx, [key]));
  await changeRow(tx, 'conversations', key, { unreachableAt: tx.now });
  await openAlert(tx, { kind: 'conversation-unreachable', subject: key });
  if (lanes.length > 0) await endWaiting(tx, key, lanes);
  const ended = await failUnreachable(tx, key);
  await endAskedWait(tx, key, true);
  for (const { runId, answer } of new Map(ended.map((part) => [part.answer, part])).values()) {
    if (runId !== null && answer !== null) await amendOutcome(tx, { runId, answer });
  }
}

async function endWaiting(tx: Tx, key: string, lanes: readonly string[]): Promise<void> {
  const open = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('conversationKey', '=', key)
    .where('laneKey', 'in', lanes)
    .where(isOpenItem())
    .execute();
  const end = { outcome: 'failed', outcomeReason: 'unreachable' } as const;
  await endItems(
    tx,
    open.map(({ id }) => id),
    end,
  );
  const isTheirs = ({ conversationKey }: { readonly conversationKey: string }) => conversationKey === key;
  const rows = tx.db.selectFrom('lanes').select(['key', 'overflow']).where('key', 'in', lanes);
  for (const lane of await rows.where('overflow', 'is not', null).execute())
    await endSummaries(tx, lane, { isTheirs, end });
}

/** Reads the lanes with waiting items of the conversations. */
export async function readWaitingLanes(tx: Tx, keys: readonly string[]): Promise<readonly string[]> {
  if (keys.length === 0) return [];
  const lanes = await tx.db
    .selectFrom('inbox')
    .select('laneKey')
    .distinct()
    .where('conversationKey', 'in', keys)
    .where(isOpenItem())
    .execute();
  return lanes.map(({ laneKey }) => laneKey);
}

/** Returns those of the conversations that can't be reached. */
export async function readUnreachable(tx: Tx, keys: readonly string[]): Promise<readonly string[]> {
  const rows = await unreachable.all(tx, { keys: JSON.stringify(keys) });
  return rows.map(({ key }) => key);
}

const unreachable = prepared((db, of: QueryParams<{ keys: string }>, dialect) =>
  db
    .selectFrom('conversations')
    .select('key')
    .where('key', ...oneOf(of.keys, dialect))
    .where('unreachableAt', 'is not', null),
);

/**
 * Marks the conversation as reachable, since somebody has written in it. Returns false when it already was. Otherwise
 * its row is locked from then on, so the caller must already have locked every lane that it needs.
 */
export async function markReachable(tx: Tx, key: string): Promise<boolean> {
  if ((await clear.run(tx, { key })) === 0) return false;
  await closeAlert(tx, { kind: 'conversation-unreachable', subject: key });
  return true;
}

const clear = prepared((db, of: QueryParams<{ key: string }>) =>
  db
    .updateTable('conversations')
    .set({ unreachableAt: null })
    .where('key', '=', of.key)
    .where('unreachableAt', 'is not', null),
);
