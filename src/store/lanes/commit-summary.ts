import type { MessagePart } from '#contracts/message.ts';
import type { StepTx, StoreCommand } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { changeRow, findRow } from '../base/row-by-key.ts';
import { lockLineageAt } from '../children/lock-lineage.ts';
import { chargeCost, closeModelCalls, type ModelCallEnd } from '../money/model-calls.ts';
import { appendMessage } from '../rows/append-transcript.ts';
import { lockLaneAt } from '../rows/lane-row.ts';
import type { RunFence } from '../rows/run-fence.ts';
import type { LaneExit } from './close-run.ts';
import { endRun, type RunEndInput } from './commit-answer.ts';
import { readSteered } from './steer.ts';

/** A summary of a session and where the session is cut. */
export type SummaryInput = RunFence & {
  /** The step's idempotency key. */
  readonly id: string;
  readonly sessionId: string;
  readonly parts: readonly MessagePart[];
  readonly model: string;
  /** Position of the first message that is shown as it was written. */
  readonly keptFrom: number;
  /** About how many tokens the context takes from here on. */
  readonly contextTokens: number;
  /** Calls that are over and not closed yet: those that wrote the summary. */
  readonly modelCalls: readonly ModelCallEnd[];
  /** End of a run that did nothing else, in the same transaction. */
  readonly end?: Omit<RunEndInput, keyof RunFence | 'message'> | undefined;
};

/** `stopped`: somebody stopped the run that was only there for it, and nothing was written. */
export type SummaryStored =
  | { readonly kind: 'stored' }
  | { readonly kind: 'ended'; readonly next: LaneExit; readonly effects: Effects }
  | { readonly kind: 'stopped'; readonly reason: string };

/**
 * Stores a summary, and has the session's history begin with it. The messages before the cut stay where they
 * are; a process killed before this commit has changed nothing. Repeating it adds nothing.
 */
export const commitSummary: StoreCommand<SummaryInput, SummaryStored> = {
  name: 'commitSummary',
  run: async (tx, input) => {
    const { laneKey, epoch, runId, end } = input;
    // The end of a run may concern its lane's parent, which is locked first.
    await (end === undefined ? lockLaneAt : lockLineageAt)(tx, laneKey, epoch);
    const { cancelReason } = end ? await readSteered(tx, runId) : {};
    if (cancelReason !== undefined) return { kind: 'stopped', reason: cancelReason };
    await storeSummary(tx, input);
    if (end === undefined) return { kind: 'stored' };
    const ended = await endRun.run(tx, { ...end, laneKey, epoch, runId, message: undefined });
    return { kind: 'ended', ...ended };
  },
};

async function storeSummary(tx: StepTx, input: SummaryInput): Promise<void> {
  const { id, sessionId, parts, model, runId, keptFrom, contextTokens, modelCalls } = input;
  if (await findRow(tx, 'transcript', id, ['id'])) return;
  await chargeCost(tx, sessionId, await closeModelCalls(tx, runId, modelCalls));
  const summary = { id, sessionId, role: 'user', parts, model, runId } as const;
  await appendMessage(tx, { ...summary, isFinished: true, isSummary: true });
  // The tokens of the last call would count what the summary has replaced.
  const [promptTokens, completionTokens] = [contextTokens, 0];
  await changeRow(tx, 'sessions', sessionId, {
    summaryMessageId: id,
    keptFrom,
    promptTokens,
    completionTokens,
  });
}
