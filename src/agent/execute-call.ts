import { settleWithGrace } from './abortable.ts';
import { cleanText } from './clean-text.ts';
import { faultText } from './fault-text.ts';
import type { AgentLoopConfig, ToolResult } from './loop-config.ts';
import type { Prepared } from './prepare-call.ts';
import { cutText } from './result-text.ts';
import type { RunScope } from './run-scope.ts';
import { boundResult, errorResult } from './tool-result.ts';

export type ReadyCall = Extract<Prepared, { readonly kind: 'ready' }>;

export type Execution = {
  readonly config: AgentLoopConfig;
  readonly scope: RunScope;
  readonly onUpdate: (callId: string, text: string) => void;
};

/** How long a tool may take to stop after an abort; what it still returns is its true result. */
const stopGraceMs = 1000;

/** Runs one tool. Never throws, and outlasts an abort by `stopGraceMs` per step at most. */
export async function executeCall(ready: ReadyCall, execution: Execution): Promise<ToolResult> {
  const { scope } = execution;
  if (scope.signal.aborted) return errorResult(cutText(scope.cut()));
  const result = await runTool(ready, execution);
  return boundResult(await passHook(ready, boundResult(result), execution));
}

async function runTool({ call, tool, input }: ReadyCall, execution: Execution): Promise<ToolResult> {
  const { config, scope, onUpdate } = execution;
  let isRunning = true;
  const ctx = {
    callId: call.id,
    run: config.run,
    signal: scope.signal,
    update: (text: string) => {
      if (isRunning) onUpdate(call.id, cleanText(text));
    },
  };
  const grace = { clock: config.clock, graceMs: stopGraceMs };
  const settled = await settleWithGrace(() => tool.execute(input, ctx), scope.signal, grace);
  isRunning = false;

  if (settled.kind === 'done') return { output: settled.value, isError: false };
  if (settled.kind === 'aborted') {
    return errorResult(`${cutText(scope.cut())}; it had started and did not stop, its outcome is unknown`);
  }
  if (scope.signal.aborted) return errorResult(cutText(scope.cut()));
  return errorResult(toolErrorText(settled.error));
}

/** What a tool throws is written for the model. */
function toolErrorText(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : faultText(error);
}

/** A hook that fails withholds the result: it may have been there to take a secret out. */
async function passHook(ready: ReadyCall, result: ToolResult, execution: Execution): Promise<ToolResult> {
  const { config, scope } = execution;
  const { afterToolCall } = config;
  if (afterToolCall === undefined) return result;
  const grace = { clock: config.clock, graceMs: stopGraceMs };
  const settled = await settleWithGrace(() => afterToolCall(ready.call, result), scope.signal, grace);
  if (settled.kind === 'done') return settled.value;
  return errorResult('the tool ran, but a check of its result failed, so the result is withheld');
}
