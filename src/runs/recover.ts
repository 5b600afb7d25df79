import type { Clock } from '#contracts/clock.ts';
import { transcriptId } from '#contracts/ids.ts';
import { unknownOutcome } from '#contracts/message.ts';
import type { Tool, ToolRun } from '#contracts/tool.ts';
import { readInput } from '../agent/call-input.ts';
import { type CallEnd, callEndOf } from '../agent/execute-call.ts';
import { cutText, resultText } from '../agent/result-text.ts';
import { boundResult, errorResult, resultMessage } from '../agent/tool-result.ts';
import type { Store } from '../store/base/command.ts';
import { markToolStarted, storeToolResults } from '../store/lanes/commit-turn.ts';
import { type OpenCall, recoverRun } from '../store/lanes/recover-run.ts';
import type { Held } from '../store/rows/run-fence.ts';

export type Recovery = {
  readonly store: Store;
  readonly clock: Clock;
  readonly held: Held;
  readonly run: ToolRun;
  readonly tools: readonly Tool[];
  readonly signal: AbortSignal;
  isLeaving(): boolean;
  /** Takes in what was sent meanwhile; true when that came in front of the calls that have not started. */
  isOvertaken(): Promise<boolean>;
};

/**
 * Brings an unfinished run's transcript to where the loop can go on: a call that never started or is
 * safe to repeat runs now; every other open call is told to the model as unknown, never run again. A
 * run that was stopped runs none; one that is handed over meanwhile leaves the rest to its next holder.
 * Returns what its calls wait for, if the run is to be parked (again); behind such a call none is started.
 */
export async function recover(recovery: Recovery): Promise<readonly string[]> {
  const { store, held, clock, signal, isLeaving, isOvertaken } = recovery;
  const open = await store.write(recoverRun, held);
  const waitsFor: string[] = [];
  let isSkipping = false;
  for (const call of open) {
    if (waitsFor.length > 0 && !call.wasStarted) continue;
    if (!call.wasStarted && !isSkipping && !signal.aborted) isSkipping = await isOvertaken();
    const end = await settleCall(recovery, { call, isSkipped: isSkipping && !call.wasStarted });
    if (end.kind === 'parked') {
      waitsFor.push(end.reason);
      continue;
    }
    const { result } = end;
    if (result.isError && isLeaving()) return [];
    const named = { id: call.callId, name: call.name, input: call.input, finished: true };
    const { parts } = resultMessage(named, result, { id: transcriptId(''), time: clock.now() });
    await store.write(storeToolResults, {
      ...held,
      messageId: call.messageId,
      results: [{ callId: call.callId, isError: result.isError, parts }],
    });
  }
  return waitsFor;
}

type Open = { readonly call: OpenCall; readonly isSkipped: boolean };

async function settleCall(recovery: Recovery, { call, isSkipped }: Open): Promise<CallEnd> {
  const { store, held, tools, run, signal } = recovery;
  if (signal.aborted) return failed(cutText('aborted'));
  if (call.refusal !== undefined) return failed(`not run: ${call.refusal}`);
  if (!call.isWhole) return failed(resultText.brokenOff);
  if (isSkipped) return failed(resultText.skipped);
  const tool = tools.find((one) => one.name === call.name);
  const mayRun = tool && (!call.wasStarted || tool.replay !== 'never');
  if (!mayRun) return failed(unknownOutcome);
  // On record before it runs, as in any turn: a crash in here is recovered from like the first one.
  await store.write(markToolStarted, { ...held, messageId: call.messageId, callId: call.callId });
  try {
    const raw = readInput(call.input);
    const input = tool.inputSchema.parse(tool.prepareArguments?.(raw) ?? raw);
    const output = await tool.execute(input, { callId: call.callId, run, signal, update: () => undefined });
    const end = callEndOf(output, tool);
    return end.kind === 'parked' ? end : { kind: 'result', result: boundResult(end.result) };
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}

function failed(text: string): CallEnd {
  return { kind: 'result', result: errorResult(text) };
}
