import type { Clock } from '#contracts/clock.ts';
import { transcriptId } from '#contracts/ids.ts';
import { unknownOutcome } from '#contracts/message.ts';
import type { Tool, ToolRun } from '#contracts/tool.ts';
import type { ToolResult } from '../agent/loop-config.ts';
import { cutText, resultText } from '../agent/result-text.ts';
import { boundResult, errorResult, resultMessage } from '../agent/tool-result.ts';
import type { Store } from '../store/command.ts';
import { markToolStarted, storeToolResults } from '../store/lanes/commit-turn.ts';
import { type OpenCall, recoverRun } from '../store/lanes/recover-run.ts';
import type { Held } from '../store/lanes/steer.ts';

export type Recovery = {
  readonly store: Store;
  readonly clock: Clock;
  readonly held: Held;
  readonly run: ToolRun;
  readonly tools: readonly Tool[];
  readonly signal: AbortSignal;
  isLeaving(): boolean;
};

/**
 * Brings an unfinished run's transcript to where the loop can go on: a call that never started or is
 * safe to repeat runs now; every other open call is told to the model as unknown, never run again. A
 * run that was stopped runs none; one that is handed over meanwhile leaves the rest to its next holder.
 */
export async function recover(recovery: Recovery): Promise<void> {
  const { store, held, clock, signal, isLeaving } = recovery;
  const open = await store.write(recoverRun, held);
  for (const call of open) {
    const result = signal.aborted ? errorResult(cutText('aborted')) : await settleCall(recovery, call);
    if (result.isError && isLeaving()) return;
    const named = { id: call.callId, name: call.name, input: call.input, finished: true };
    const { parts } = resultMessage(named, result, { id: transcriptId(''), time: clock.now() });
    await store.write(storeToolResults, {
      ...held,
      messageId: call.messageId,
      results: [{ callId: call.callId, isError: result.isError, parts }],
    });
  }
}

async function settleCall(recovery: Recovery, call: OpenCall): Promise<ToolResult> {
  const { store, held, tools, run, signal } = recovery;
  if (!call.isWhole) return errorResult(resultText.brokenOff);
  const tool = tools.find((one) => one.name === call.name);
  const mayRun = tool && (!call.wasStarted || tool.replay !== 'never');
  if (!mayRun) return errorResult(unknownOutcome);
  // On record before it runs, as in any turn: a crash in here is recovered from like the first one.
  await store.write(markToolStarted, { ...held, messageId: call.messageId, callId: call.callId });
  try {
    const raw: unknown = call.input.trim() === '' ? {} : JSON.parse(call.input);
    const input = tool.inputSchema.parse(tool.prepareArguments?.(raw) ?? raw);
    const output = await tool.execute(input, { callId: call.callId, run, signal, update: () => undefined });
    return boundResult({ output, isError: false });
  } catch (error) {
    return errorResult(error instanceof Error ? error.message : String(error));
  }
}
