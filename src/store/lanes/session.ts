import { type DisplayChoice, reasoningDisplays, verboseLevels } from '#contracts/display.ts';
import type { DropPolicy, QueueMode } from '#contracts/queue-settings.ts';
import type { StepTx, StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { newRowId } from '../base/keys.ts';
import { changeRow, findRow } from '../base/row-access.ts';
import { stopTree } from '../children/stop-tree.ts';
import { reviveSummary } from '../items/overflow.ts';
import { forgetContext } from '../rows/group-context.ts';
import { endItems, endSummarized } from '../rows/item.ts';
import { beginSession, changeSettings, type Lane, lockLane } from '../rows/lane.ts';

/**
 * Starts another session in a lane. The old one's sub-agents are stopped. Their announcements, and the messages that
 * were overheard or summarized before `seq` (the command's own number), end with the old session.
 */
export async function startSession(
  tx: StepTx,
  lane: Lane,
  { seq = lane.nextSeq, effects }: { readonly seq?: number | undefined; readonly effects: Effects },
): Promise<void> {
  await stopTree(tx, { sessionId: lane.sessionId, reason: 'reset' }, effects);
  await beginSession(tx, lane, newRowId());
  effects.endedSessions.push(lane.sessionId);
  await forgetContext(tx, { laneKey: lane.key, before: seq });
  await dropSummaries(tx, lane, seq);
  if ((await dropAnnouncements(tx, lane)) > 0) await reviveSummary(tx, lane.key, effects);
}

/**
 * Drops what sub-agents announced to the old session while the command waited, since nobody in the new session asked
 * for it.
 */
async function dropAnnouncements(tx: Tx, lane: Lane): Promise<number> {
  const announced = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .where('source', '=', 'child')
    .where('sourceKey', 'like', 'child:%')
    .execute();
  return endItems(
    tx,
    announced.map(({ id }) => id),
    reset,
  );
}

const reset = { outcome: 'cancelled', outcomeReason: 'reset' } as const;

/** Drops the cap's summaries from before the command along with the old session; later ones stay queued. */
async function dropSummaries(tx: Tx, lane: Lane, before: number): Promise<void> {
  const summaries = json.summaries(lane.overflow);
  const dropped = summaries.filter((summary) => summary.seq < before);
  if (dropped.length === 0) return;
  const kept = summaries.filter((summary) => summary.seq > before);
  const overflow = kept.length === 0 ? null : JSON.stringify(kept);
  await changeRow(tx, 'lanes', lane.key, { overflow });
  const ids = dropped.map((summary) => summary.inboxId);
  await endSummarized(tx, ids, reset);
}

/** A session's own choices; null means the agent's default, or the configuration's. */
export type SessionChoice = {
  readonly model: string | null;
  readonly reasoning: string | null;
  readonly verbose: string | null;
  readonly reasoningShown: string | null;
};

/** Reads the session's choice. */
export async function readChoice(tx: Tx, sessionId: string): Promise<SessionChoice> {
  const row = await findRow(tx, 'sessions', sessionId, ['model', 'reasoning', 'verbose', 'reasoningShown']);
  return row ?? { model: null, reasoning: null, verbose: null, reasoningShown: null };
}

/** Sets the given values for runs that begin from now on. Safe to repeat. The caller must hold the lane's lock. */
export async function setChoice(tx: Tx, sessionId: string, choice: Partial<SessionChoice>): Promise<void> {
  const { model, reasoning, verbose, reasoningShown } = choice;
  await changeRow(tx, 'sessions', sessionId, { model, reasoning, verbose, reasoningShown });
}

/** Returns what was chosen with `/verbose` and `/reasoning`, as those stored it. */
export function displayChoiceOf(row: Pick<SessionChoice, 'verbose' | 'reasoningShown'>): DisplayChoice {
  const verbose = verboseLevels.find((level) => level === row.verbose);
  const reasoning = reasoningDisplays.find((display) => display === row.reasoningShown);
  return { ...(verbose && { verbose }), ...(reasoning && { reasoning }) };
}

/** Reads what the session has chosen to show. */
export const readDisplay: StoreQuery<{ readonly sessionId: string }, DisplayChoice> = {
  query: 'readDisplay',
  run: async (tx, { sessionId }) => displayChoiceOf(await readChoice(tx, sessionId)),
};

/**
 * Sets the queue mode that was chosen for a conversation on the chat page, like `/queue <mode>` in it. Returns false if
 * there is no such lane or it is one of Parley's own. Safe to repeat: the same mode changes nothing.
 */
export const setLaneMode: StoreCommand<{ readonly laneKey: string; readonly mode: QueueMode }, boolean> = {
  name: 'setLaneMode',
  run: async (tx, { laneKey, mode }) => {
    const lane = await lockLane(tx, laneKey);
    if (lane?.class !== 'main') return false;
    const { debounceMs, quietMs, cap } = lane;
    // Written by Parley, from the configuration and the choice in chat: both as of the lane's last message.
    const drop = lane.drop as DropPolicy;
    await changeSettings(tx, lane, {
      change: { mode },
      configured: { mode, debounceMs, quietMs, cap, drop },
    });
    return true;
  },
};
