// Decides about one call before it runs: known and complete → not repeated endlessly → valid arguments →
// no hook blocks it → permitted. The first "no" answers the call; the tool never sees it.

import { prettifyError } from 'zod';
import type { ToolCallData } from '#contracts/message.ts';
import { leastTrusted } from '#contracts/outcome.ts';
import { noSections, type Sections } from '#contracts/section.ts';
import type { Tool } from '#contracts/tool.ts';
import { settle } from './abortable.ts';
import { readInput } from './call-input.ts';
import { faultText } from './fault-text.ts';
import type { AgentLoopConfig, ToolResult } from './loop-config.ts';
import type { LoopGuard } from './loop-guard.ts';
import { cutText, resultText } from './result-text.ts';
import type { RunScope } from './run-scope.ts';
import { errorResult } from './tool-result.ts';

export type Prepared =
  | { readonly kind: 'ready'; readonly call: ToolCallData; readonly tool: Tool; readonly input: unknown }
  | {
      readonly kind: 'answered';
      readonly call: ToolCallData;
      readonly result: ToolResult;
      /** Nothing further of the batch runs, for this reason. */
      readonly halt?: 'denied' | 'loop_guard';
    };

export type Preparation = {
  readonly config: AgentLoopConfig;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly guard: LoopGuard;
  readonly scope: RunScope;
};

/** Never throws: whatever fails here becomes the call's result. */
export async function prepareCall(call: ToolCallData, using: Preparation): Promise<Prepared> {
  if (using.scope.signal.aborted) return answered(call, cutText(using.scope.cut()));
  if (!using.guard.admit(call)) return answered(call, resultText.repeated, 'loop_guard');
  const tool = using.tools.get(call.name);
  if (tool === undefined) return answered(call, `unknown tool: ${call.name}`);
  if (!call.finished) return answered(call, resultText.cutOff);
  if (call.refusal !== undefined) return answered(call, `not run: ${call.refusal}`);

  const parsed = await parseInput(call, tool, using.config.sections);
  if (parsed.kind === 'invalid') return answered(call, `invalid input for ${call.name}: ${parsed.problem}`);

  const blocked = await askHook(call, parsed.input, using);
  if (blocked !== undefined) return answered(call, blocked);

  const permission = await askPermission(call, tool, using);
  if (permission.kind === 'no') return answered(call, permission.text, permission.halt);
  return { kind: 'ready', call, tool, input: parsed.input };
}

function answered(call: ToolCallData, text: string, halt?: 'denied' | 'loop_guard'): Prepared {
  return { kind: 'answered', call, result: errorResult(text), ...(halt === undefined ? {} : { halt }) };
}

type ParsedInput =
  | { readonly kind: 'valid'; readonly input: unknown }
  | { readonly kind: 'invalid'; readonly problem: string };

async function parseInput(
  call: ToolCallData,
  tool: Tool,
  sections: Sections = noSections,
): Promise<ParsedInput> {
  try {
    const parsed = await sections.run('tool arguments', () => {
      const raw = readInput(call.input);
      const prepared = tool.prepareArguments === undefined ? raw : tool.prepareArguments(raw);
      return tool.inputSchema.safeParseAsync(prepared);
    });
    if (parsed.success) return { kind: 'valid', input: parsed.data };
    return { kind: 'invalid', problem: prettifyError(parsed.error) };
  } catch (error) {
    return { kind: 'invalid', problem: faultText(error) };
  }
}

/** The reason to block the call, or nothing. A hook that throws blocks it: it may have been about to. */
async function askHook(
  call: ToolCallData,
  input: unknown,
  { config, scope }: Preparation,
): Promise<string | undefined> {
  const { beforeToolCall } = config;
  if (beforeToolCall === undefined) return undefined;
  const verdict = await settle(() => beforeToolCall(call, input), scope.signal);
  if (verdict.kind === 'aborted') return cutText(scope.cut());
  if (verdict.kind === 'failed')
    return `blocked: a check before the call failed (${faultText(verdict.error)})`;
  // A hook is a plugin's: what it gives back may be anything.
  return verdict.value?.kind === 'block' ? `blocked: ${verdict.value.reason}` : undefined;
}

type Permission =
  | { readonly kind: 'yes' }
  | { readonly kind: 'no'; readonly text: string; readonly halt?: 'denied' };

async function askPermission(
  call: ToolCallData,
  tool: Tool,
  { config, scope }: Preparation,
): Promise<Permission> {
  const denied: Permission = { kind: 'no', text: resultText.denied, halt: 'denied' };
  if (leastTrusted(config.run.authority, tool.authority) !== tool.authority) return denied;

  const { permit } = config;
  if (permit === undefined) return { kind: 'yes' };
  const answer = await settle(() => permit(call, tool), scope.signal);
  if (answer.kind === 'aborted') return { kind: 'no', text: cutText(scope.cut()) };
  if (answer.kind === 'failed') {
    return { kind: 'no', text: `not run: its permission could not be checked (${faultText(answer.error)})` };
  }
  return answer.value === 'allowed' ? { kind: 'yes' } : denied;
}
