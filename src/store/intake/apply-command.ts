import type { Acceptance } from '#contracts/acceptance.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
import type { Tx } from '../command.ts';
import { ensureConversation, insertPart } from '../delivery/insert-part.ts';
import { ensureLane, type Lane, settingsOf, takeSeq } from '../lanes/lane-row.ts';
import { isOpenItem } from '../open-rows.ts';
import type { Accepting } from './accepting.ts';
import type { CommandEffect, Decision } from './proposal.ts';

type CommandDecision = Extract<Decision, { kind: 'command' }>;
type Found = 'done' | 'nothing' | 'notPermitted';

/** A command that acts at once, past the lane: its effect, its answer and its ledger row are one transaction. */
export async function applyCommand(
  tx: Tx,
  accepting: Accepting,
  decision: CommandDecision,
): Promise<Acceptance> {
  const lane = await ensureLane(tx, decision.lane);
  const found = await carryOut(tx, lane, { accepting, effect: decision.effect });
  const text = decision.replies[found];
  if (text !== undefined) {
    const { proposal, input, effects } = accepting;
    const key = `${input.account}:${proposal.eventKey}:answer`;
    const timeline = { laneKey: lane.key, seq: await takeSeq(tx, lane.key) };
    const content = { kind: 'text', text: { text, spans: [] } } as const;
    effects.deliveries.push(
      await insertPart(tx, { key, route: decision.replies.route, content, purpose: 'notice', timeline }),
    );
  }
  if (found === 'notPermitted') return { kind: 'refused', reason: 'not-permitted' };
  return { kind: 'command', command: decision.command };
}

async function carryOut(
  tx: Tx,
  lane: Lane,
  { accepting, effect }: { accepting: Accepting; effect: CommandEffect },
): Promise<Found> {
  switch (effect.kind) {
    case 'none':
      return 'done';
    case 'stop':
      return stop(tx, lane, { accepting, effect });
    case 'queue':
      await changeQueue(tx, lane, effect.change);
      return 'done';
    case 'activation': {
      const key = accepting.proposal.conversationKey;
      await ensureConversation(tx, key);
      await tx.db
        .updateTable('conversations')
        .set({ activation: effect.value })
        .where('key', '=', key)
        .execute();
      return 'done';
    }
    default:
      return effect satisfies never;
  }
}

type Stop = Extract<CommandEffect, { kind: 'stop' }>;

/** Aborts the active run and cancels the sender's waiting messages (`all`: everybody's). */
async function stop(
  tx: Tx,
  lane: Lane,
  { accepting, effect }: { accepting: Accepting; effect: Stop },
): Promise<Found> {
  const { senderId } = accepting.proposal;
  if (effect.isAll && !effect.isPrivileged) return 'notPermitted';
  const mayStopRun =
    effect.isPrivileged || (lane.runId !== null && (await startedBy(tx, lane.runId, senderId)));
  let waiting = tx.db
    .updateTable('inbox')
    .set({ state: 'ended', outcome: 'cancelled', outcomeReason: 'stop' })
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .where('kind', '=', 'message');
  if (!effect.isAll) waiting = waiting.where('senderId', '=', senderId);
  const { numUpdatedRows } = await waiting.executeTakeFirst();
  if (lane.runId === null) return numUpdatedRows > 0n ? 'done' : 'nothing';
  if (!mayStopRun) return numUpdatedRows > 0n ? 'done' : 'notPermitted';
  await tx.db
    .updateTable('runs')
    .set({ cancelReason: 'stop' })
    .where('id', '=', lane.runId)
    .where('cancelReason', 'is', null)
    .execute();
  accepting.effects.cancels.push({ runId: lane.runId, reason: 'stop' });
  return 'done';
}

async function startedBy(tx: Tx, runId: string, senderId: string): Promise<boolean> {
  const row = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('runId', '=', runId)
    .where('senderId', '=', senderId)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

async function changeQueue(tx: Tx, lane: Lane, change: Partial<QueueSettings> | 'reset'): Promise<void> {
  if (change === 'reset') {
    // The configuration's settings return with the next accepted message.
    await tx.db.updateTable('lanes').set({ overrides: null }).where('key', '=', lane.key).execute();
    return;
  }
  const settings = { ...settingsOf(lane), ...change };
  await tx.db
    .updateTable('lanes')
    .set({ ...settings, overrides: JSON.stringify(change) })
    .where('key', '=', lane.key)
    .execute();
}
