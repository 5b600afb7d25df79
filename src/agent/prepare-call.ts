// Checks one call before it runs: not repeated endlessly → known and complete → valid arguments → not blocked by a
// hook → permitted → approved by a person, where that is needed. The first "no" becomes the call's result; the tool
// never sees the call.

import { prettifyError, type ZodType, z } from 'zod';
import type { CallQuestion } from '#contracts/agent-event.ts';
import { type AgentMessage, type ToolCallData, unknownOutcome } from '#contracts/message.ts';
import type { ToolSpec } from '#contracts/model.ts';
import { lowestAuthority } from '#contracts/outcome.ts';
import type { Tool } from '#contracts/tool.ts';
import { readInput } from './call-input.ts';
import { describeCall, digestOf } from './describe-call.ts';
import { faultText } from './fault-text.ts';
import type { AgentLoopConfig, PermitRequest, ToolResult, ToolVerdict } from './loop-config.ts';
import type { LoopGuard } from './loop-guard.ts';
import { raceAbort } from './race-abort.ts';
import type { AskedCall, CallState, OpenBatch } from './resumption.ts';
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
  /** It waits for a person's approval. */
  | { readonly kind: 'asked'; readonly call: ToolCallData; readonly question: CallQuestion }
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

/** A call that doesn't run. */
export type WithheldCall = Exclude<PreparedCall, { readonly kind: 'ready' | 'asked' }>;

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

  const checked = await checkCall(call, tool, using).catch((error: unknown) =>
    // A tool's own description may throw.
    refusal(`not run: it could not be checked (${faultText(error)})`),
  );
  if (checked.kind === 'refused') return refuse(checked.text, checked.halt);
  if (checked.kind === 'asked') return { kind: 'asked', call, question: checked.question };
  return { kind: 'ready', call, tool, input: checked.input, hasBegun };
}

/** Result of checking a complete call of a known tool. */
type CheckedCall =
  | { readonly kind: 'passed'; readonly input: unknown }
  | { readonly kind: 'asked'; readonly question: CallQuestion }
  | { readonly kind: 'refused'; readonly text: string; readonly halt?: Halt | undefined };

function refusal(text: string, halt?: Halt): CheckedCall {
  return { kind: 'refused', text, halt };
}

async function checkCall(call: ToolCallData, tool: Tool, using: Preparation): Promise<CheckedCall> {
  const state = using.open?.states.get(call.id);
  const asked = state?.kind === 'asked' ? state : state?.kind === 'started' ? state.asked : undefined;
  if (asked !== undefined) return checkAsked(asked, { call, tool, using });
  const given = await parseInput(call, tool);
  if (given.kind === 'invalid') return refusal(`invalid input for ${call.name}: ${given.problem}`);

  const verdict = await askHook(call, given.input, using);
  if (verdict.kind === 'block') return refusal(verdict.reason);
  const parsed = verdict.input === undefined ? given : await parseArguments(verdict.input, tool);
  if (parsed.kind === 'invalid')
    return refusal(`invalid input for ${call.name}, changed by a hook: ${parsed.problem}`);

  // A call that an earlier attempt has started was allowed then: only a denial counts now.
  const isApproved = state?.kind === 'started';
  const permit = await askPermission({ call, tool, input: parsed.input, isApproved }, using);
  if (permit.kind === 'refused') return permit;
  if (isApproved) return { ...parsed, kind: 'passed' };
  return permit.kind === 'ask' || verdict.kind === 'ask'
    ? askAbout(parsed, tool, call)
    : { ...parsed, kind: 'passed' };
}

/** Checks a call that a person has been asked about, by another attempt: it must still be the same call. */
async function checkAsked(
  { verdict, input: stored, digest }: AskedCall,
  { call, tool, using }: { readonly call: ToolCallData; readonly tool: Tool; readonly using: Preparation },
): Promise<CheckedCall> {
  if (verdict === 'denied') return refusal(resultText.denied, 'denied');
  if (verdict === 'expired') return refusal(resultText.unanswered, 'denied');
  if (verdict === 'void') return refusal(resultText.cancelled);
  const parsed = await parseStored(stored, tool);
  if (parsed.kind === 'invalid' || digestOf(tool, parsed.input) !== digest)
    return refusal(resultText.changed);
  if (verdict === 'open') return askAbout(parsed, tool, call);
  const permit = await askPermission({ call, tool, input: parsed.input, isApproved: true }, using);
  return permit.kind === 'refused' ? permit : { ...parsed, kind: 'passed' };
}

function askAbout({ input, given }: ValidInput, tool: Tool, { id: callId }: ToolCallData): CheckedCall {
  const described = describeCall(tool, input);
  if (described.kind === 'too-long') return refusal(`not run: ${described.problem}`);
  const { name, authority } = tool;
  const { shown } = described;
  const question = {
    callId,
    tool: name,
    input: JSON.stringify(given),
    shown,
    digest: digestOf(tool, input),
    authority,
  };
  return { kind: 'asked', question };
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
    case 'asked':
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

const denials: readonly string[] = [resultText.denied, resultText.unanswered, resultText.revoked].flatMap(
  (text) => [text, begunText(text)],
);

function wasDenied({ parts }: AgentMessage): boolean {
  return parts.some(
    (part) => part.type === 'tool_result' && part.data.is_error && denials.includes(part.data.content),
  );
}

function answered(call: ToolCallData, text: string, halt?: Halt): WithheldCall {
  return { kind: 'answered', call, result: errorResult(text), ...(halt === undefined ? {} : { halt }) };
}

type ValidInput = {
  readonly kind: 'valid';
  readonly input: unknown;
  /** The arguments before they were parsed; parsing them again gives the same input. */
  readonly given: unknown;
};

type ParsedInput = ValidInput | { readonly kind: 'invalid'; readonly problem: string };

async function parseInput(call: ToolCallData, tool: Tool): Promise<ParsedInput> {
  try {
    const raw = readInput(call.input);
    return await parseArguments(tool.prepareArguments === undefined ? raw : tool.prepareArguments(raw), tool);
  } catch (error) {
    return { kind: 'invalid', problem: faultText(error) };
  }
}

async function parseStored(input: string, tool: Tool): Promise<ParsedInput> {
  try {
    return await parseArguments(readInput(input), tool);
  } catch (error) {
    return { kind: 'invalid', problem: faultText(error) };
  }
}

async function parseArguments(given: unknown, tool: Tool): Promise<ParsedInput> {
  try {
    const parsed = await tool.inputSchema.safeParseAsync(given);
    if (!parsed.success) return { kind: 'invalid', problem: prettifyError(parsed.error) };
    const problem = argumentProblem(tool, given);
    return problem === undefined
      ? { kind: 'valid', input: parsed.data, given }
      : { kind: 'invalid', problem };
  } catch (error) {
    return { kind: 'invalid', problem: faultText(error) };
  }
}

/** Asks the hook. One that throws blocks the call, since it may have been about to. */
async function askHook(
  call: ToolCallData,
  input: unknown,
  { config, scope }: Preparation,
): Promise<ToolVerdict> {
  const { beforeToolCall } = config;
  if (beforeToolCall === undefined) return { kind: 'go' };
  const answer = await raceAbort(() => beforeToolCall(call, input), scope.signal);
  if (answer.kind === 'aborted') return { kind: 'block', reason: cutText(scope.abortReason()) };
  if (answer.kind === 'failed')
    return { kind: 'block', reason: `blocked: a check before the call failed (${faultText(answer.error)})` };
  // Hooks come from plugins and may return anything.
  const verdict = answer.value ?? { kind: 'go' };
  return verdict.kind === 'block' ? { kind: 'block', reason: `blocked: ${verdict.reason}` } : verdict;
}

async function askPermission(
  request: Omit<PermitRequest, 'digest'>,
  { config, scope }: Preparation,
): Promise<{ readonly kind: 'allowed' | 'ask' } | Extract<CheckedCall, { readonly kind: 'refused' }>> {
  const refused = (text: string, halt?: Halt) => ({ kind: 'refused', text, halt }) as const;
  const { tool, input } = request;
  if (lowestAuthority(config.run.authority, tool.authority) !== tool.authority)
    return refused(resultText.denied, 'denied');

  const { permit } = config;
  if (permit === undefined) return { kind: 'allowed' };
  const answer = await raceAbort(
    () => permit({ ...request, digest: () => digestOf(tool, input) }),
    scope.signal,
  );
  if (answer.kind === 'aborted') return refused(cutText(scope.abortReason()));
  if (answer.kind === 'failed')
    return refused(`not run: its permission could not be checked (${faultText(answer.error)})`);
  switch (answer.value) {
    case 'allowed':
    case 'ask':
      return { kind: answer.value };
    case 'revoked':
      return refused(resultText.revoked, 'denied');
    default:
      // `denied`, or whatever a library user's function returns.
      return refused(resultText.denied, 'denied');
  }
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
