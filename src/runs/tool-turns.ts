import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { AgentEvent } from '#contracts/agent-event.ts';
import type { Clock } from '#contracts/clock.ts';
import type { ToolState } from '#contracts/feed.ts';
import type { PersistResult } from '#contracts/hook.ts';
import { transcriptId } from '#contracts/ids.ts';
import {
  type AgentMessage,
  isErrorIn,
  type MessagePart,
  type ToolCallData,
  toolCallsOf,
} from '#contracts/message.ts';
import type { Probe } from '#contracts/probe.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { endStateOf, resultMessage } from '../agent/tool-result.ts';
import { readMediaName } from '../inbound/media.ts';
import { stripText } from '../logging/redaction.ts';
import { saidLine, toolLine } from '../replies/answer-leads.ts';
import type { ToolSend } from '../replies/dedupe.ts';
import type { ReplyMedia } from '../replies/reply-pipeline.ts';
import type { Store } from '../store/base/command.ts';
import { outgoingPrefix } from '../store/intake/media.ts';
import { markToolStarted, storeToolResults, type ToolResults } from '../store/lanes/commit-turn.ts';
import type { PriorToolResult } from '../store/lanes/recover-run.ts';
import type { RunFence } from '../store/rows/run.ts';
import type { StoredResult } from '../store/rows/tool-call.ts';
import type { LiveView } from './live-view.ts';
import type { RunActions } from './plan-answer.ts';

export type ToolTurnsDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly probe: Probe;
  readonly live: LiveView;
  readonly suppressAcknowledgements: boolean;
  /** Says whether the run was cut to continue elsewhere: calls that this interrupted aren't recorded. */
  isHandingOver(): boolean;
  onTool(callId: string, state: ToolState): void;
  /** Removes secrets. */
  redact(text: string): string;
  /** Changes results before they are stored; absent without such a hook. */
  readonly persist?: PersistResult | undefined;
};

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>;

type OpenTurn = {
  readonly messageId: string;
  readonly calls: ReadonlyMap<string, ToolCallData>;
  /** Results as they were stored, by call. */
  readonly stored: Map<string, StoredResult>;
};

/**
 * Records the calls of a run's tool turns: each call before it can have an effect, and its result before the loop
 * continues. Collects what tools have sent and whether one failed, for the next answer.
 */
export class ToolTurns {
  readonly #held: RunFence;
  readonly #deps: ToolTurnsDeps;
  #turn: OpenTurn | undefined;
  #toolSends: readonly ToolSend[] = [];
  #files: readonly ReplyMedia[] = [];
  #toolFailure: { readonly tool: string } | undefined;
  /** A line for each finished call, and for what was said beside calls. */
  #lines: readonly string[] = [];

  constructor(held: RunFence, deps: ToolTurnsDeps) {
    this.#held = held;
    this.#deps = deps;
  }

  /** Adds what tools did under an earlier holder of this run: messages not to repeat, and files to send. */
  recall(results: readonly PriorToolResult[]): void {
    for (const { tool, parts } of results) {
      this.#lines = [...this.#lines, `⚙ ${tool}`];
      this.#noteSend(tool, storedMetadata(parts));
      this.#noteFiles(parts);
    }
  }

  #noteSend(tool: string, metadata: Record<string, unknown> | undefined): void {
    const send = parseToolSend(tool, metadata);
    if (send) this.#toolSends = [...this.#toolSends, send];
  }

  /** Takes the files from the stored result: a hook may have withheld it. */
  #noteFiles(parts: readonly MessagePart[]): void {
    this.#files = [...this.#files, ...parseAttached(storedMetadata(parts))];
  }

  /** Returns the lines about calls that no one has been sent, and forgets them. */
  takeLines(): readonly string[] {
    const lines = this.#lines;
    this.#lines = [];
    return lines;
  }

  /** Keeps what was said beside the calls of a turn. */
  noteSaid(text: string): void {
    const line = saidLine(this.#deps.redact(text));
    if (line !== undefined) this.#lines = [...this.#lines, line];
  }

  #noteLine(call: ToolCallData, { parts, isError }: StoredResult): void {
    const { redact, live } = this.#deps;
    const [first] = parts;
    const text = first?.type === 'tool_result' ? first.data.content : '';
    this.#lines = [...this.#lines, stripText(redact(toolLine(call, { text, isError })))];
    live.showLines(this.#lines);
  }

  /** Returns what the tools have sent, and whether one failed, since the last answer. */
  get actions(): RunActions {
    const { suppressAcknowledgements } = this.#deps;
    const [toolSends, files, toolFailure] = [this.#toolSends, this.#files, this.#toolFailure];
    return { toolSends, files, toolFailure, lines: this.#lines, suppressAcknowledgements };
  }

  /** Call it once an answer is on record. */
  resetActions(): void {
    this.#toolSends = [];
    this.#files = [];
    this.#lines = [];
    this.#toolFailure = undefined;
  }

  /** Begins the turn of a message whose calls are on record, and some of whose `results` may be. */
  open(message: AgentMessage, results: readonly AgentMessage[] = []): void {
    const calls = new Map(toolCallsOf(message.parts).map((call) => [call.id, call]));
    const stored = results.map(({ parts }) => resultIn(parts));
    this.#turn = { messageId: message.id, calls, stored: new Map(stored.map((each) => [each.callId, each])) };
  }

  /** Ends the turn; returns the id of its message and the results to store, of which most are stored already. */
  close(results: readonly AgentMessage[]): Pick<ToolResults, 'messageId' | 'results'> | undefined {
    const turn = this.#turn;
    this.#turn = undefined;
    if (turn === undefined) return undefined;
    const { messageId, stored } = turn;
    return {
      messageId,
      results: results.map(({ parts }) => stored.get(callIdIn(parts)) ?? this.#storedResult(parts)),
    };
  }

  /** Returns the stored form of a result's message; without a `tool_result` part it counts as failed. */
  #storedResult(given: readonly MessagePart[]): StoredResult {
    const { persist } = this.#deps;
    const [first] = given;
    const call = first?.type === 'tool_result' ? first.data : undefined;
    const of = call && { id: call.tool_call_id, name: call.name };
    const parts =
      of && persist ? persist({ runId: this.#held.runId, call: of, source: 'tool' }, given) : given;
    return resultIn(parts);
  }

  /** Like `end`, resolves with whether that is on record. */
  async start(call: ToolCallData): Promise<boolean> {
    const { live, store, probe, onTool } = this.#deps;
    live.toolStarted(call.name);
    onTool(call.id, 'started');
    const messageId = this.#turn?.messageId;
    if (messageId !== undefined)
      await store.write(markToolStarted, { ...this.#held, messageId, callId: call.id });
    probe.reach('tool-started');
    return messageId !== undefined;
  }

  async end(event: EventOf<'tool_execution_end'>): Promise<boolean> {
    const { callId, name, result, isError } = event;
    const { clock, store, probe, onTool, isHandingOver } = this.#deps;
    const turn = this.#turn;
    const call = turn?.calls.get(callId);
    if (!turn || !call) return false;
    // The call stays open: the process that resumes the run records its end, knowing whether it had started.
    if (isError && isHandingOver()) {
      onTool(callId, 'failed');
      return false;
    }
    if (!isError) this.#noteSend(name, result.metadata);
    const state = endStateOf(event);
    if (state === 'failed') this.#toolFailure = { tool: name };
    const stamp = { id: transcriptId(''), time: clock.now() };
    const { parts } = resultMessage(call, { output: result, isError }, stamp);
    const stored = this.#storedResult(parts);
    turn.stored.set(callId, stored);
    if (!stored.isError) this.#noteFiles(stored.parts);
    this.#noteLine(call, stored);
    const { messageId } = turn;
    await store.write(storeToolResults, { ...this.#held, messageId, results: [stored] });
    onTool(callId, state);
    probe.reach('tool-finished');
    return true;
  }
}

function resultIn(parts: readonly MessagePart[]): StoredResult {
  return { callId: callIdIn(parts), isError: isErrorIn(parts), parts };
}

function callIdIn(parts: readonly MessagePart[]): string {
  return parts.find((part) => part.type === 'tool_result')?.data.tool_call_id ?? '';
}

/** The `message` tool's report of a send, in its result's metadata under `sent`. */
const sentSchema = z.object({
  state: z.enum(['sent', 'unknown', 'failed']),
  route: z.object({
    channel: z.string(),
    account: z.string(),
    conversation: z.string(),
    thread: z.string().optional(),
  }),
  text: z.string(),
  media: z.array(z.string()),
});

/** Parses the `message` tool's report of what it sent; undefined for every other tool. */
export function parseToolSend(
  tool: string,
  metadata: Record<string, unknown> | undefined,
): ToolSend | undefined {
  if (tool !== 'message') return undefined;
  const sent = sentSchema.safeParse(metadata?.sent);
  if (!sent.success) return undefined;
  const { route, ...rest } = sent.data;
  // The tool wrote these ids from a route.
  return { tool, ...rest, route: route as unknown as ReplyRoute };
}

/** The report of files that a tool's result has attached, in its metadata. Only Parley makes such names. */
const attachedSchema = z.array(
  z.object({
    path: z.string().refine((name) => readMediaName(name)?.inboxId.startsWith(outgoingPrefix) === true),
    source: z.string(),
    mimeType: z.string(),
    name: z.string(),
    sizeBytes: z.number().optional(),
    asVoice: z.literal(true).optional(),
  }),
);

/** Parses the report of attached files; none for any other metadata. */
export function parseAttached(metadata: Record<string, unknown> | undefined): readonly ReplyMedia[] {
  return attachedSchema.safeParse(metadata?.attached).data ?? [];
}

/** Returns the metadata of a stored result. */
function storedMetadata(parts: PriorToolResult['parts']): Record<string, unknown> | undefined {
  const metadata = parts.find((part) => part.type === 'tool_result')?.data.metadata;
  // Parley wrote this result, so its metadata is the JSON of an object.
  return metadata === undefined ? undefined : (parseJson(metadata) as Record<string, unknown>);
}
