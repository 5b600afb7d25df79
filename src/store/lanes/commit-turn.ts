import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { changeRow } from '../base/row-by-key.ts';
import { insertPart } from '../delivery/insert-part.ts';
import { type ModelCallEnd, type NewModelCall, openModelCall } from '../money/model-calls.ts';
import { endCall, insertCall, type StoredResult, startCall } from '../rows/call-states.ts';
import { lockLaneAt, takeSeq } from '../rows/lane-row.ts';
import type { RunFence } from '../rows/run-fence.ts';
import { type AssistantImage, writeAssistant } from './assistant-row.ts';
import { type Boundary, type SteerContext, steerAt } from './steer.ts';

/**
 * Updates the stored image of a streaming message, along with another commit. A message counts only once it is
 * finished, and a late image never overwrites a finished one.
 */
export const saveImage: StoreCommand<RunFence & { readonly message: AssistantImage }, void> = {
  name: 'saveImage',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    await writeAssistant(tx, { message: input.message, runId: input.runId, isFinished: false });
  },
};

export type ToolTurn = RunFence & {
  readonly message: AssistantImage;
  readonly calls: readonly { readonly callId: string; readonly name: string; readonly input: string }[];
  /** The model calls that wrote the message. */
  readonly modelCalls?: readonly ModelCallEnd[];
};

/**
 * Step 6 for a message with tool calls: the message counts from here on, each call gets a row, and the results'
 * positions are reserved in source order. Committed before the first tool starts.
 */
export const commitToolTurn: StoreCommand<ToolTurn, void> = {
  name: 'commitToolTurn',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    const { message, runId, modelCalls: calls } = input;
    await writeAssistant(tx, { message, runId, isFinished: true, ...(calls && { calls }) });
    const of = { runId, messageId: message.id, sessionId: message.sessionId };
    for (const [ordinal, call] of input.calls.entries()) await insertCall(tx, { ...of, ...call, ordinal });
  },
};

export type ToolStart = RunFence & { readonly messageId: string; readonly callId: string };

/** Marks a call as started. Committed before its tool runs, so recovery knows which calls may have had an effect. */
export const markToolStarted: StoreCommand<ToolStart, void> = {
  name: 'markToolStarted',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    await startCall(tx, input);
  },
};

export type ToolResults = RunFence & {
  readonly messageId: string;
  readonly results: readonly StoredResult[];
};

/** Stores results at their reserved positions. An existing result is never overwritten. */
export const storeToolResults: StoreCommand<ToolResults, void> = {
  name: 'storeToolResults',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    for (const result of input.results) await endCall(tx, input.messageId, result);
  },
};

/** `message` is its state at the end of the turn: the results of its calls may have changed its finish. */
export type ToolTurnEnd = ToolResults &
  SteerContext & {
    readonly message: AssistantImage;
    /** The first model call of the next turn, if there is one and no budget counts it. */
    readonly nextCall?: NewModelCall | undefined;
  };

/** The boundary after a tool turn: stores every call's result and takes the messages sent meanwhile. */
export const endToolTurn: StoreCommand<ToolTurnEnd, Boundary> = {
  name: 'endToolTurn',
  run: async (tx, input) => {
    const lane = await lockLaneAt(tx, input.laneKey, input.epoch);
    for (const result of input.results) await endCall(tx, input.messageId, result);
    const { id, parts } = input.message;
    await changeRow(tx, 'transcript', id, { parts: JSON.stringify(parts) });
    if (input.nextCall) await openModelCall(tx, input.nextCall);
    return steerAt(tx, lane, input);
  },
};

export type NoticeInput = RunFence & {
  readonly key: string;
  readonly route: ReplyRoute;
  readonly content: OutboundContent;
};

/**
 * Stores a notice outside the answers, once per key, for example that the model is busy. Returns the deliveries that
 * are due: none if the run has ended, which another connection may have committed first.
 */
export const storeNotice: StoreCommand<NoticeInput, Effects> = {
  name: 'storeNotice',
  run: async (tx, input) => {
    const lane = await lockLaneAt(tx, input.laneKey, input.epoch);
    const effects = noEffects();
    if (lane.runId !== input.runId) return effects;
    const timeline = { laneKey: lane.key, seq: await takeSeq(tx, lane.key) };
    const { key, route, content, runId } = input;
    effects.deliveries.push(
      await insertPart(tx, { key, route, content, purpose: 'notice', runId, timeline }),
    );
    return effects;
  },
};
