import type { MessagePart } from '#contracts/message.ts';
import type { StepTx, StoreCommand } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { changeRow, findRow } from '../base/row-access.ts';
import { lockLineageAt } from '../children/child.ts';
import { chargeCost, closeModelCalls, type ModelCallEnd } from '../money/model-call.ts';
import { lockLaneAt } from '../rows/lane.ts';
import type { RunFence } from '../rows/run.ts';
import { appendMessage } from '../rows/transcript.ts';
import { endRun, type RunEndInput } from './commit-answer.ts';
import type { LaneExit } from './end-run.ts';
import { readSteered } from './steer.ts';

/** A summary of a session and where the session is cut. */
export type SummaryInput = RunFence & {
  /** The step's idempotency key. */
  readonly id: string;
  readonly sessionId: string;
  readonly parts: readonly MessagePart[];
  readonly model: string;
  /** Position of the first message that is still shown as written. */
  readonly keptFrom: number;
  /** Estimated size of the context from now on, tokens. */
  readonly contextTokens: number;
  /** Calls that are over but not closed yet: those that wrote the summary. */
  readonly modelCalls: readonly ModelCallEnd[];
  /** End of a run that only summarizes, in the same transaction. */
  readonly end?: Omit<RunEndInput, keyof RunFence | 'message'> | undefined;
};

/** `stopped`: the run that only summarizes was asked to stop, and nothing was written. */
export type SummaryStored =
  | { readonly kind: 'stored' }
  | { readonly kind: 'ended'; readonly next: LaneExit; readonly effects: Effects }
  | { readonly kind: 'stopped'; readonly reason: string };

/**
 * Stores a summary and makes the session's history begin with it. The messages before the cut remain stored. A process
 * killed before this commit has changed nothing. Repeating it adds nothing.
 */
export const commitSummary: StoreCommand<SummaryInput, SummaryStored> = {
  name: 'commitSummary',
  run: async (tx, input) => {
    const { laneKey, epoch, runId, end } = input;
    // Ending a run may affect the lane's parent, which must be locked first.
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
  // The last call's tokens would still include the messages that the summary replaces.
  const [promptTokens, completionTokens] = [contextTokens, 0];
  await changeRow(tx, 'sessions', sessionId, {
    summaryMessageId: id,
    keptFrom,
    promptTokens,
    completionTokens,
  });
}

/** Sizes of what every request begins with, in estimated tokens. */
export type PromptSizes = { readonly instructionTokens: number; readonly toolTokens: number };

/** Records the sizes for `/context`, along with another commit: they are only displayed. */
export const savePromptSizes: StoreCommand<RunFence & PromptSizes & { readonly sessionId: string }, void> = {
  name: 'savePromptSizes',
  run: async (tx, { laneKey, epoch, sessionId, instructionTokens, toolTokens }) => {
    await lockLaneAt(tx, laneKey, epoch);
    await changeRow(tx, 'sessions', sessionId, { instructionTokens, toolTokens });
  },
};
