// Checks one call before it runs: not repeated endlessly → known and complete → valid arguments → not blocked by a
// hook → permitted. The first "no" becomes the call's result; the tool never sees the call.

import { prettifyError, type ZodType, z } from 'zod';
import { type AgentMessage, type ToolCallData, unknownOutcome } from '#contracts/message.ts';
import type { ToolSpec } from '#contracts/model.ts';
import { lowestAuthority } from '#contracts/outcome.ts';
import type { Tool } from '#contracts/tool.ts';
import { readInput } from './call-input.ts';
import { faultText } from './fault-text.ts';
import type { AgentLoopConfig, ToolResult } from './loop-config.ts';
import type { LoopGuard } from './loop-guard.ts';
import { raceAbort } from './race-abort.ts';
import type { CallState, OpenBatch } from './resumption.ts';
import type { RunScope } from './run-scope.ts';
import { begunText, cutText, errorResult, resultText } from './tool-result.ts';

export type PreparedCall =
  | {
      readonly kind: 'ready';
      readonly call: ToolCallData;
      readonly tool: Tool;
      readonly input: unknown;
      /** Started by an earlier attempt: it may have had its effect. */
      readonly hasBegun: boolean;
    }
  | {
      readonly kind: 'answered';
      readonly call: ToolCallData;
      readonly result: ToolResult;
      /** Set if nothing else in the batch runs, with the reason. */
      readonly halt?: Halt;
    }
  /** Its result was recorded by an earlier attempt. */
  | {
      readonly kind: 'done';
      readonly call: ToolCallData;
      readonly message: AgentMessage;
      readonly halt?: Halt;
    };

/** Why nothing else in a batch runs. */
export type Halt = 'denied' | 'loop_guard';

/** A call that doesn't run now. */
export type WithheldCall = Exclude<PreparedCall, { readonly kind: 'ready' }>;

export type Preparation = {
  readonly config: AgentLoopConfig;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly guard: LoopGuard;
  readonly scope: RunScope;
  /** State of a batch left by an earlier attempt; absent for a new batch. */
  readonly open?: OpenBatch | undefined;
};

/**
 * Decides whether and how the call runs. Never throws: any failure here becomes the call's result. A call started by an
 * earlier attempt passes the same checks as a new one, if it may run again at all.
 */
export async function prepareCall(call: ToolCallData, using: Preparation): Promise<PreparedCall> {
  const isRepeated = !using.guard.admit(call);
  const known = prepareKnown(call, using);
  if (known !== undefined) return isRepeated ? { ...known, halt: 'loop_guard' } : known;
  const hasBegun = isBegun(call, using);
  const refuse = (text: string, halt?: Halt) => answered(call, hasBegun ? begunText(text) : text, halt);
  if (using.scope.signal.aborted) return refuse(cutText(using.scope.abortReason()));
  if (isRepeated) return refuse(resultText.repeated, 'loop_guard');
  const tool = using.tools.get(call.name);
  if (tool === undefined) return refuse(`unknown tool: ${call.name}`);
  if (!call.finished) return refuse(resultText.cutOff);
  if (call.refusal !== undefined) return refuse(`not run: ${call.refusal}`);

  const parsed = await parseInput(call, tool);
  if (parsed.kind === 'invalid') return refuse(`invalid input for ${call.name}: ${parsed.problem}`);

  const blocked = await askHook(call, parsed.input, using);
  if (blocked !== undefined) return refuse(blocked);

  const permission = await askPermission(call, tool, using);
  if (permission.kind === 'no') return refuse(permission.text, permission.halt);
  return { kind: 'ready', call, tool, input: parsed.input, hasBegun };
}

/** Withholds a call for the reason `text`, unless more is known about it, for example that it had started. */
export function withhold(call: ToolCallData, text: string, using: Preparation): WithheldCall {
  return prepareKnown(call, using) ?? answered(call, isBegun(call, using) ? begunText(text) : text);
}

/** Says whether an earlier attempt started the call but left no result. */
function isBegun({ id }: ToolCallData, { open }: Preparation): boolean {
  return open?.states.get(id)?.kind === 'started';
}

/** Handles a call that an earlier attempt finished, or started and must not repeat; undefined for any other. */
function prepareKnown(call: ToolCallData, { open, tools }: Preparation): WithheldCall | undefined {
  const state: CallState = open?.states.get(call.id) ?? { kind: 'fresh' };
  switch (state.kind) {
    case 'fresh':
      return undefined;
    case 'started': {
      const mayRepeat = (tools.get(call.name)?.replay ?? 'never') !== 'never';
      return mayRepeat ? undefined : answered(call, unknownOutcome);
    }
    case 'done':
      return {
        kind: 'done',
        call,
        message: state.result,
        ...(wasDenied(state.result) && { halt: 'denied' }),
      };
    default:
      return state satisfies never;
  }
}

const denials: readonly string[] = [resultText.denied, begunText(resultText.denied)];

function wasDenied({ parts }: AgentMessage): boolean {
  return parts.some(
    (part) => part.type === 'tool_result' && part.data.is_error && denials.includes(part.data.content),
  );
}

function answered(call: ToolCallData, text: string, halt?: Halt): WithheldCall {
  return { kind: 'answered', call, result: errorResult(text), ...(halt === undefined ? {} : { halt }) };
}

type ParsedInput =
  | { readonly kind: 'valid'; readonly input: unknown }
  | { readonly kind: 'invalid'; readonly problem: string };

async function parseInput(call: ToolCallData, tool: Tool): Promise<ParsedInput> {
  try {
    const raw = readInput(call.input);
    const prepared = tool.prepareArguments === undefined ? raw : tool.prepareArguments(raw);
    const parsed = await tool.inputSchema.safeParseAsync(prepared);
    if (!parsed.success) return { kind: 'invalid', problem: prettifyError(parsed.error) };
    const problem = argumentProblem(tool, prepared);
    return problem === undefined ? { kind: 'valid', input: parsed.data } : { kind: 'invalid', problem };
  } catch (error) {
    return { kind: 'invalid', problem: faultText(error) };
  }
}

/** Returns the reason to block the call, if any. A hook that throws blocks it, since it may have been about to. */
async function askHook(
  call: ToolCallData,
  input: unknown,
  { config, scope }: Preparation,
): Promise<string | undefined> {
  const { beforeToolCall } = config;
  if (beforeToolCall === undefined) return undefined;
  const verdict = await raceAbort(() => beforeToolCall(call, input), scope.signal);
  if (verdict.kind === 'aborted') return cutText(scope.abortReason());
  if (verdict.kind === 'failed')
    return `blocked: a check before the call failed (${faultText(verdict.error)})`;
  // Hooks come from plugins and may return anything.
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
  if (lowestAuthority(config.run.authority, tool.authority) !== tool.authority) return denied;

  const { permit } = config;
  if (permit === undefined) return { kind: 'yes' };
  const answer = await raceAbort(() => permit(call, tool), scope.signal);
  if (answer.kind === 'aborted') return { kind: 'no', text: cutText(scope.abortReason()) };
  if (answer.kind === 'failed') {
    return { kind: 'no', text: `not run: its permission could not be checked (${faultText(answer.error)})` };
  }
  return answer.value === 'allowed' ? { kind: 'yes' } : denied;
}

/** Describes the tools to the provider. Objects accept no additional properties. */
export function toolSpecs(tools: readonly Tool[]): readonly ToolSpec[] {
  return tools.map((tool) => describe(tool).spec);
}

/** Returns the length of the tools' descriptions as JSON, UTF-16 units. */
export function specsLength(tools: readonly Tool[]): number {
  const brackets = 2;
  return tools.reduce((length, tool) => length + describe(tool).length + 1, brackets - 1);
}

/** Names an argument that the tool doesn't have, if there is one; its schema would drop it silently. */
function argumentProblem(tool: Tool, given: unknown): string | undefined {
  const { properties, additionalProperties } = describe(tool).spec.inputSchema;
  if (additionalProperties !== false || typeof given !== 'object' || given === null) return undefined;
  const known = Object.keys(properties ?? {});
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return undefined;
  return `unknown argument ${unknown.slice(0, 64)}; the tool takes ${known.join(', ') || 'none'}`;
}

type ToolDescription = { readonly spec: ToolSpec; readonly length: number };

/** Tools are created for each run, but their schemas aren't, so each schema is described only once. */
const described = new WeakMap<ZodType, ToolDescription>();

function describe({ name, description, inputSchema }: Tool): ToolDescription {
  const known = described.get(inputSchema);
  if (known?.spec.name === name && known.spec.description === description) return known;
  const spec = { name, description, inputSchema: jsonSchemaOf(inputSchema) };
  const made = { spec, length: JSON.stringify(spec).length };
  described.set(inputSchema, made);
  return made;
}

function jsonSchemaOf(schema: ZodType): Record<string, unknown> {
  const { $schema: _, ...body } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: closeObject,
  });
  return { type: 'object', ...body };
}

function closeObject({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.type === 'object' && jsonSchema.additionalProperties === undefined)
    jsonSchema.additionalProperties = false;
}
