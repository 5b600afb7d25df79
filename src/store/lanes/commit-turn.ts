import type { MessagePart, Unsendable } from '#contracts/message.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { changeRow, findRow, plus } from '../base/row-access.ts';
import { insertPart } from '../delivery/part.ts';
import {
  chargeCost,
  closeModelCalls,
  type ModelCallEnd,
  type NewModelCall,
  type OpenCalls,
  openModelCall,
  type Spent,
} from '../money/model-call.ts';
import { lockLaneAt, takeSeq } from '../rows/lane.ts';
import type { RunFence } from '../rows/run.ts';
import { endCall, insertCall, type StoredResult, startCall } from '../rows/tool-call.ts';
import { appendMessage, type Charge } from '../rows/transcript.ts';
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

/** Results of the calls of one message. */
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

/**
 * Stores a notice outside the answers, once per key, for example that the model is busy. Returns the deliveries that
 * are due: none if the run has ended, which another connection may have committed first.
 */
export const storeNotice: StoreCommand<
  RunFence & {
    readonly key: string;
    readonly route: ReplyRoute;
    readonly content: OutboundContent;
  },
  Effects
> = {
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

/** An assistant message as it is stored; later images replace earlier ones. */
export type AssistantImage = {
  readonly id: string;
  readonly sessionId: string;
  readonly parts: readonly MessagePart[];
  readonly model: string | undefined;
};

/**
 * Writes the current state of an assistant message and the cost of its calls. Returns false if the message was
 * already finished, which means that this is a repeat.
 */
export async function writeAssistant(
  tx: Tx,
  input: {
    readonly message: AssistantImage;
    readonly runId: string;
    readonly isFinished: boolean;
    /** The model calls that wrote it, once they are over. */
    readonly calls?: readonly ModelCallEnd[];
    /** Both as the caller read them under its lane's lock. */
    readonly before?: { readonly known: StoredImage | undefined; readonly open: OpenCalls };
  },
): Promise<boolean> {
  const { message, runId, isFinished, calls = [], before } = input;
  const { id, sessionId, parts, model } = message;
  const { known, open } = before ?? {
    known: await findRow(tx, 'transcript', id, ['isFinished']),
    open: undefined,
  };
  if (known?.isFinished === 1) return false;
  const spent = await closeModelCalls(tx, runId, calls, open);
  const charge = chargeOf(spent);
  if (!charge) await chargeCost(tx, sessionId, spent);
  if (!known) {
    await appendMessage(tx, { id, sessionId, role: 'assistant', parts, model, runId, isFinished, charge });
    return true;
  }
  if (charge) {
    const { cost, promptTokens, completionTokens } = charge;
    await changeRow(tx, 'sessions', sessionId, { cost: plus(cost), promptTokens, completionTokens });
  }
  const image = { parts: JSON.stringify(parts), isFinished: isFinished ? 1 : 0, model };
  await changeRow(tx, 'transcript', id, { ...image, updatedAt: tx.now });
  return true;
}

/** Returns undefined if none of its calls were counted. */
function chargeOf({ cost, usage }: Spent): Charge | undefined {
  return (
    usage && {
      cost,
      promptTokens: usage.inputTokens + usage.cacheWriteTokens,
      completionTokens: usage.outputTokens + usage.cacheReadTokens,
    }
  );
}

/** An earlier image of a message. */
export type StoredImage = { readonly isFinished: number };

/**
 * Records which contents no request may include any more, so that they are searched for only once. Safe to repeat:
 * marks are set, not added to.
 */
export const markUnsendable: StoreCommand<
  RunFence & {
    readonly marks: readonly { readonly id: string; readonly unsendable: Unsendable }[];
  },
  void
> = {
  name: 'markUnsendable',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    for (const { id, unsendable } of input.marks) {
      await tx.db
        .updateTable('transcript')
        .set({ unsendable, updatedAt: tx.now })
        .where('id', '=', id)
        .where('sessionId', '=', (eb) =>
          eb.selectFrom('runs').select('sessionId').where('runs.id', '=', input.runId),
        )
        .execute();
    }
  },
};
