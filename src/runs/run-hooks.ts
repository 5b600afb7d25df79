/** Joins hooks to the steps of a run. Without a handler the steps get nothing, so that they skip what belongs to hooks. */
import { cleanText, fitBytes } from '#channel-kit/clean-text.ts';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { HookCall, HookResult, PersistedCall, PersistResult } from '#contracts/hook.ts';
import type { MessagePart, ToolCallData } from '#contracts/message.ts';
import type { SystemBlock } from '#contracts/model.ts';
import { maxResultBytes, type ToolOutput, type ToolRun } from '#contracts/tool.ts';
import type { AgentLoopConfig, ToolResult, ToolVerdict } from '../agent/loop-config.ts';
import { errorResult, resultText } from '../agent/tool-result.ts';
import { hookRunOf } from '../hooks/hook-run.ts';
import type { Hooks, Verdict } from '../hooks/hooks.ts';

/** Returns the instructions as `before_agent_start` has left them. Additional context follows them, uncached. */
export async function startRun(
  hooks: Hooks | undefined,
  toolRun: ToolRun,
  system: readonly SystemBlock[],
): Promise<readonly SystemBlock[]> {
  if (!hooks?.has('before_agent_start')) return system;
  const prompt = system.map(({ text }) => text).join('\n\n');
  const started = { run: hookRunOf(toolRun), prompt, context: [] };
  const { event } = await hooks.decide('before_agent_start', started);
  const own = event.prompt === prompt ? system : [{ text: event.prompt, isStable: true }];
  return [...own, ...event.context.map((text) => ({ text, isStable: false }))];
}

/** Returns the loop's hooks around tool calls; empty if nobody is registered. */
export function toolHooksOf(
  hooks: Hooks | undefined,
  toolRun: ToolRun,
): Pick<AgentLoopConfig, 'beforeToolCall' | 'afterToolCall'> {
  if (hooks === undefined) return {};
  const run = hookRunOf(toolRun);
  return {
    ...(hooks.has('before_tool_call') && {
      beforeToolCall: async (call: ToolCallData, input: unknown) => {
        const event = { run, call: callOf(call), input, isAsked: false };
        return toolVerdictOf(input, await hooks.decide('before_tool_call', event));
      },
    }),
    ...(hooks.has('after_tool_call') && {
      afterToolCall: async (call: ToolCallData, result: ToolResult) => {
        const event = { run, call: callOf(call), result: seenOf(result) };
        return changedBy(await hooks.decide('after_tool_call', event), result);
      },
    }),
  };
}

function toolVerdictOf(given: unknown, { event, end }: Verdict<'before_tool_call'>): ToolVerdict {
  if (end?.kind === 'failed') return { kind: 'block', reason: `the hook ${end.owner} failed` };
  if (end?.kind === 'decided') return { kind: 'block', reason: end.decision.reason };
  const input = event.input === given ? {} : { input: event.input };
  return event.isAsked ? { kind: 'ask', ...input } : { kind: 'go', ...input };
}

/** Returns what is done to results before they are stored; undefined if nobody is registered. */
export function persistHookOf(hooks: Hooks | undefined): PersistResult | undefined {
  if (!hooks?.has('tool_result_persist')) return undefined;
  return (of, parts) => persistParts(hooks, of, parts);
}

function callOf({ id, name }: HookCall): HookCall {
  return { id, name };
}

function seenOf({ output: { text, metadata, images = [] }, isError }: ToolResult): HookResult {
  return { text, isError, images: images.length, ...(metadata !== undefined && { metadata }) };
}

/** A hook that failed may have been about to remove a secret, so nothing of the result remains. */
function changedBy({ event, end }: Verdict<'after_tool_call'>, { output }: ToolResult): ToolResult {
  if (end !== undefined) return errorResult(resultText.withheld);
  const { text, isError, metadata, images } = event.result;
  const changed: ToolOutput = {
    text,
    ...(metadata !== undefined && { metadata }),
    ...(images > 0 && output.images !== undefined && { images: output.images }),
  };
  return { output: changed, isError };
}

/** Returns the stored form of a result's message after the hooks. A message without a result is left as it is. */
function persistParts(
  hooks: Hooks,
  of: PersistedCall,
  parts: readonly MessagePart[],
): readonly MessagePart[] {
  const [first, ...images] = parts;
  if (first?.type !== 'tool_result') return parts;
  const { metadata, ...data } = first.data;
  const seen: HookResult = {
    ...{ text: data.content, isError: data.is_error, images: images.length },
    // Parley wrote this metadata: it is the JSON of an object.
    ...(metadata !== undefined && { metadata: parseJson(metadata) as Record<string, unknown> }),
  };
  const { event, end } = hooks.persist({ ...of, result: seen });
  if (end !== undefined) {
    return [{ type: 'tool_result', data: { ...data, content: resultText.withheld, is_error: true } }];
  }
  const { result } = event;
  const content = result.text === seen.text ? seen.text : fitText(result.text, seen.text);
  const kept = result.metadata !== undefined && metadata !== undefined ? { metadata } : {};
  const changed = { ...data, ...kept, content, is_error: result.isError };
  return [{ type: 'tool_result', data: changed }, ...(result.images > 0 ? images : [])];
}

/** A hook may lengthen a text to what any result may have. */
function fitText(text: string, before: string): string {
  return fitBytes(cleanText(text), Math.max(maxResultBytes, Buffer.byteLength(before)));
}
