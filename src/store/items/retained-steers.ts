/**
 * For `steer-backlog`: a message steered into a run counts as used once the run has recorded a decision made after
 * reading it. If the run ends before that, the message is requeued.
 */
import type { Selectable } from 'kysely';
import { finishReasonOf } from '#contracts/message.ts';
import type { Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import type { InboxTable } from '../base/tables.ts';
import { endItems, returnItems } from '../rows/item.ts';
import { isCorrectionOf, readWaiting } from './waiting-items.ts';

/**
 * Requeues the run's retained steers that weren't used, in their old places, and removes them from the transcript; they
 * return to it when they are taken again. Called under the lane's lock by each step that ends the run, before it writes
 * the interrupted message, which nobody has read.
 */
export async function requeueRetained(
  tx: Tx,
  run: { readonly id: string; readonly laneKey: string },
): Promise<void> {
  const kept = await keptSteers.all(tx, { runId: run.id });
  const [first] = kept;
  if (!first) return;
  const consumedAt = await lastDecision(tx, { runId: run.id, ...first });
  const unread = kept.filter(({ position }) => position > consumedAt);
  if (unread.length === 0) return;
  const ids = unread.map(({ id }) => id);
  await tx.db
    .deleteFrom('transcript')
    .where(
      'id',
      'in',
      unread.map(({ transcriptId }) => transcriptId),
    )
    .execute();
  await returnItems(tx, ids);
  await joinCorrections(tx, run.laneKey, new Set(ids));
}

const keptSteers = prepared((db, of: QueryParams<{ runId: string }>) =>
  db
    .selectFrom('inbox')
    .innerJoin('transcript', 'transcript.id', 'inbox.transcriptId')
    .select(['inbox.id', 'transcript.id as transcriptId', 'transcript.sessionId', 'transcript.position'])
    .where('inbox.runId', '=', of.runId)
    .where('inbox.state', '=', 'taken')
    .where('inbox.isKept', '=', 1)
    .orderBy('transcript.position'),
);

type Since = { readonly runId: string; readonly sessionId: string; readonly position: number };

/** Returns the position of the run's last decision after `position`; -1 when there is none. */
async function lastDecision(tx: Tx, { runId, sessionId, position }: Since): Promise<number> {
  const messages = await tx.db
    .selectFrom('transcript')
    .select(['id', 'parts', 'position'])
    .where('sessionId', '=', sessionId)
    .where('position', '>', position)
    .where('runId', '=', runId)
    .where('role', '=', 'assistant')
    .where('isFinished', '=', 1)
    .orderBy('position', 'desc')
    .execute();
  const begun = await tx.db
    .selectFrom('toolCalls')
    .select('messageId')
    .where('runId', '=', runId)
    .where('startedAt', 'is not', null)
    .execute();
  const hasBegun = new Set(begun.map(({ messageId }) => messageId));
  const last = messages.find(({ id, parts }) => {
    const finish = finishReasonOf(json.parts(parts));
    return (finish !== undefined && isDecision.has(finish)) || hasBegun.has(id);
  });
  return last?.position ?? -1;
}

/** Finish reasons of a decision. A message that was cut off only counts if one of its tools was started. */
const isDecision: ReadonlySet<string> = new Set(['end_turn', 'tool_use', 'max_tokens', 'permission_denied']);

/** Merges waiting corrections of requeued messages, which already have their newest wording. */
async function joinCorrections(tx: Tx, laneKey: string, ids: ReadonlySet<string>): Promise<void> {
  const waiting = await readWaiting(tx, laneKey);
  const requeued = waiting.filter(({ id, isCorrection }) => ids.has(id) && !isCorrection);
  const joined = waiting.filter((row) => requeued.some((message) => isCorrectionOf(row, message)));
  const end = { outcome: 'merged', outcomeReason: 'corrected' } as const;
  await endItems(
    tx,
    joined.map(({ id }) => id),
    end,
  );
}

const columns = ['id', 'account', 'senderId', 'conversationKey', 'content'] as const;
type KeptSteer = Pick<Selectable<InboxTable>, (typeof columns)[number]>;

/** Stops retaining the run's steers that somebody has withdrawn. The caller holds the lane's lock. */
export async function dropRetained(
  tx: Tx,
  runId: string,
  isWithdrawn: (row: KeptSteer) => boolean,
): Promise<void> {
  const kept = await tx.db
    .selectFrom('inbox')
    .select(columns)
    .where('runId', '=', runId)
    .where('state', '=', 'taken')
    .where('isKept', '=', 1)
    .execute();
  const ids = kept.filter(isWithdrawn).map(({ id }) => id);
  if (ids.length > 0) await tx.db.updateTable('inbox').set({ isKept: 0 }).where('id', 'in', ids).execute();
}
