import { cleanText, fitBytes } from '#channel-kit/clean-text.ts';
import { noSections } from '#contracts/section.ts';
import type { ParkRequest, Tool, ToolOutput } from '#contracts/tool.ts';
import { faultText } from './fault-text.ts';
import type { AgentLoopConfig, ToolResult } from './loop-config.ts';
import type { PreparedCall } from './prepare-call.ts';
import { settleWithGrace } from './race-abort.ts';
import { begunText, cutText, resultText } from './result-text.ts';
import type { RunScope } from './run-scope.ts';
import { boundResult, errorResult } from './tool-result.ts';

export type ReadyCall = Extract<PreparedCall, { readonly kind: 'ready' }>;

export type Execution = {
  readonly config: AgentLoopConfig;
  readonly scope: RunScope;
  readonly onUpdate: (callId: string, text: string) => void;
};

/** How long a tool may take to stop after an abort; a result returned within this time still counts. */
const stopGraceMs = 1000;
/** Longest reason of a parked call. */
const maxReasonBytes = 200;

export type CallEnd =
  | { readonly kind: 'result'; readonly result: ToolResult }
  /** No result yet: it arrives from outside later and bypasses `afterToolCall`. */
  | ParkedCall;

/** A call that waits for an outside result, for at most `waitMs`. */
export type ParkedCall = {
  readonly kind: 'parked';
  readonly reason: string;
  readonly waitMs?: number;
};

/** Runs one tool. Never throws, and outlasts an abort by at most `stopGraceMs` per step. */
export async function executeCall(ready: ReadyCall, execution: Execution): Promise<CallEnd> {
  if (execution.scope.signal.aborted) return ended(cutResult(ready, execution));
  try {
    const end = await runTool(ready, execution);
    if (end.kind === 'parked') return end;
    const { sections = noSections } = execution.config;
    const bound = (result: ToolResult) => sections.run('tool result', () => boundResult(result));
    return ended(bound(await passHook(ready, bound(end.result), execution)));
  } catch {
    // A plugin's tool or hook may return anything.
    return ended(errorResult('the tool ran, but its result is unreadable'));
  }
}

/** Interprets a tool's output: a result, or a request to wait, which only a durable tool may make. */
function callEndOf(output: ToolOutput | ParkRequest, tool: Pick<Tool, 'replay'>): CallEnd {
  if (typeof output !== 'object' || output === null || !('parked' in output)) {
    return ended({ output, isError: false });
  }
  if (tool.replay !== 'durable') return ended(errorResult(resultText.mayNotWait));
  const { reason, waitMs = 0 } = output.parked;
  const parked = { kind: 'parked', reason: fitBytes(cleanText(reason), maxReasonBytes) } as const;
  return waitMs > 0 ? { ...parked, waitMs } : parked;
}

function ended(result: ToolResult): CallEnd {
  return { kind: 'result', result };
}

async function runTool(ready: ReadyCall, execution: Execution): Promise<CallEnd> {
  const { call, tool, input } = ready;
  const { config, scope, onUpdate } = execution;
  let isRunning = true;
  const ctx = {
    callId: call.id,
    run: config.run,
    isRepeat: ready.hasBegun,
    signal: scope.signal,
    update: (text: string) => {
      if (isRunning) onUpdate(call.id, cleanText(text));
    },
  };
  const grace = { clock: config.clock, graceMs: stopGraceMs };
  const { sections = noSections } = config;
  const execute = () => sections.run(`tool ${tool.name}`, () => tool.execute(input, ctx));
  const settled = await settleWithGrace(execute, scope.signal, grace);
  isRunning = false;

  if (settled.kind === 'done') return callEndOf(settled.value, tool);
  if (settled.kind === 'aborted') return ended(errorResult(begunText(cutText(scope.abortReason()))));
  if (scope.signal.aborted) return ended(cutResult(ready, execution));
  return ended(errorResult(toolErrorText(settled.error)));
}

/** Returns the result of a call that the end of the run stopped or kept from running. */
function cutResult({ hasBegun }: ReadyCall, { scope }: Execution): ToolResult {
  const text = cutText(scope.abortReason());
  return errorResult(hasBegun ? begunText(text) : text);
}

/** Returns the tool's own error message if it has one, since that is written for the model. */
function toolErrorText(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : faultText(error);
}

/** A failing hook withholds the result, because its purpose may have been to remove a secret. */
async function passHook(ready: ReadyCall, result: ToolResult, execution: Execution): Promise<ToolResult> {
  const { config, scope } = execution;
  const { afterToolCall } = config;
  if (afterToolCall === undefined) return result;
  const grace = { clock: config.clock, graceMs: stopGraceMs };
  const settled = await settleWithGrace(() => afterToolCall(ready.call, result), scope.signal, grace);
  if (settled.kind === 'done') return settled.value;
  return errorResult('the tool ran, but a check of its result failed, so the result is withheld');
}
