import type { AgentEvent } from '#contracts/agent-event.ts';
import type { Clock } from '#contracts/clock.ts';
import { transcriptId } from '#contracts/ids.ts';
import { type AgentMessage, type ToolCallData, toolCallsOf } from '#contracts/message.ts';
import type { Probe } from '#contracts/probe.ts';
import { endStateOf, resultMessage } from '../agent/tool-result.ts';
import type { ToolSend } from '../replies/dedupe.ts';
import type { Store } from '../store/base/command.ts';
import { markToolStarted, storeToolResults } from '../store/lanes/commit-turn.ts';
import type { RunFence } from '../store/rows/run-fence.ts';
import type { LiveView } from './live-view.ts';
import type { RunActions } from './plan-answer.ts';
import { parseToolSend } from './tool-send.ts';

export type ToolTurnsDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly probe: Probe;
  readonly live: LiveView;
  readonly suppressAcknowledgements: boolean;
  /** Says whether the run was cut to continue elsewhere: calls that this interrupted aren't recorded. */
  isHandingOver(): boolean;
  onTool(call: Pick<ToolCallData, 'id' | 'name'>, state: 'started' | ReturnType<typeof endStateOf>): void;
};

type EventOf<Type extends AgentEvent['type']> = Extract<AgentEvent, { type: Type }>;

/**
 * Records the calls of a run's tool turns: each call before it can have an effect, and its result before the loop
 * continues. Collects what tools have sent and whether one failed, for the next answer.
 */
export class ToolTurns {
  readonly #held: RunFence;
  readonly #deps: ToolTurnsDeps;
  #turn: { readonly messageId: string; readonly calls: ReadonlyMap<string, ToolCallData> } | undefined;
  #toolSends: readonly ToolSend[] = [];
  #toolFailure: { readonly tool: string } | undefined;

  constructor(held: RunFence, deps: ToolTurnsDeps) {
    this.#held = held;
    this.#deps = deps;
  }

  /** Adds messages sent by an earlier holder of this run, which the next answer need not repeat. */
  recall(toolSends: readonly ToolSend[]): void {
    this.#toolSends = [...toolSends, ...this.#toolSends];
  }

  /** Returns what the tools have sent, and whether one failed, since the last answer. */
  get actions(): RunActions {
    const { suppressAcknowledgements } = this.#deps;
    return { toolSends: this.#toolSends, toolFailure: this.#toolFailure, suppressAcknowledgements };
  }

  /** Call it once an answer is on record. */
  forgetDeeds(): void {
    this.#toolSends = [];
    this.#toolFailure = undefined;
  }

  /** Begins the turn of a message whose calls are on record. */
  open({ id, parts }: AgentMessage): void {
    this.#turn = { messageId: id, calls: new Map(toolCallsOf(parts).map((call) => [call.id, call])) };
  }

  /** Ends the turn; returns the id of its message. */
  close(): string | undefined {
    const turn = this.#turn;
    this.#turn = undefined;
    return turn?.messageId;
  }

  async start(call: ToolCallData): Promise<void> {
    const { live, store, probe, onTool } = this.#deps;
    live.toolStarted(call.name);
    onTool(call, 'started');
    const messageId = this.#turn?.messageId;
    if (messageId !== undefined)
      await store.write(markToolStarted, { ...this.#held, messageId, callId: call.id });
    probe.reach('tool-started');
  }

  async end(event: EventOf<'tool_execution_end'>): Promise<void> {
    const { callId, name, result, isError } = event;
    const { clock, store, probe, onTool, isHandingOver } = this.#deps;
    const turn = this.#turn;
    const call = turn?.calls.get(callId);
    if (!turn || !call) return;
    // The call stays open: the process that resumes the run records its end, knowing whether it had started.
    if (isError && isHandingOver()) return onTool(call, 'failed');
    const send = isError ? undefined : parseToolSend(name, result.metadata);
    if (send) this.#toolSends = [...this.#toolSends, send];
    const state = endStateOf(event);
    if (state === 'failed') this.#toolFailure = { tool: name };
    const stamp = { id: transcriptId(''), time: clock.now() };
    const { parts } = resultMessage(call, { output: result, isError }, stamp);
    await store.write(storeToolResults, {
      ...this.#held,
      messageId: turn.messageId,
      results: [{ callId, isError, parts }],
    });
    onTool(call, state);
    probe.reach('tool-finished');
  }
}
