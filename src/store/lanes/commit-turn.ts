import type { MessagePart } from '#contracts/message.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { insertNewRow } from '../base/insert-row.ts';
import { insertPart } from '../delivery/insert-part.ts';
import { appendMessage } from '../rows/append-transcript.ts';
import { lockLaneAt, takeSeq } from '../rows/lane-row.ts';
import type { Held } from '../rows/run-fence.ts';
import { type AssistantImage, type ModelCall, writeAssistant } from './assistant-row.ts';
import { type Boundary, type Steering, steerAt } from './steer.ts';

/**
 * Freshens the stored image of a message that streams. Rides along with another commit; a message
 * counts only once it is finished, so a late image never overwrites one that is.
 */
export const saveImage: StoreCommand<Held & { readonly message: AssistantImage }, void> = {
  name: 'saveImage',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    await writeAssistant(tx, { message: input.message, runId: input.runId, isFinished: false });
  },
};

export type ToolTurn = Held & {
  readonly message: AssistantImage;
  readonly calls: readonly { readonly callId: string; readonly name: string; readonly input: string }[];
  readonly modelCall: ModelCall | undefined;
};

/**
 * Step 6 for a message with tool calls: the message counts, each call has its row, and the places of
 * the results are reserved in source order. Committed before the first tool starts.
 */
export const commitToolTurn: StoreCommand<ToolTurn, void> = {
  name: 'commitToolTurn',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    const { message, runId, modelCall } = input;
    await writeAssistant(tx, { message, runId, isFinished: true, modelCall });
    for (const [ordinal, call] of input.calls.entries()) {
      const { callId, name, input: given } = call;
      const pending = { state: 'pending', isError: 0 } as const;
      const row = { runId, messageId: message.id, callId, name, input: given, ordinal, ...pending };
      if (!(await insertNewRow(tx, 'toolCalls', row))) continue;
      await appendMessage(tx, {
        id: resultIdOf(message.id, ordinal),
        sessionId: message.sessionId,
        role: 'tool',
        parts: [],
        runId,
        isFinished: false,
      });
    }
  },
};

export type ToolStart = Held & { readonly messageId: string; readonly callId: string };

/** Committed before the tool runs: recovery knows which calls may have had an effect. */
export const markToolStarted: StoreCommand<ToolStart, void> = {
  name: 'markToolStarted',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    await tx.db
      .updateTable('toolCalls')
      .set({ state: 'started', startedAt: tx.now })
      .where('messageId', '=', input.messageId)
      .where('callId', '=', input.callId)
      .where('state', '=', 'pending')
      .execute();
  },
};

export type StoredResult = {
  readonly callId: string;
  readonly isError: boolean;
  /** The parts of the result's own message. */
  readonly parts: readonly MessagePart[];
};

export type ToolResults = Held & { readonly messageId: string; readonly results: readonly StoredResult[] };

/** Stores results in their reserved places. A result that stands is never overwritten. */
export const storeToolResults: StoreCommand<ToolResults, void> = {
  name: 'storeToolResults',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    await writeToolResults(tx, input);
  },
};

/** `message`: as it stands at the end of the turn; what became of its calls may have changed its finish. */
export type ToolTurnEnd = ToolResults & Steering & { readonly message: AssistantImage };

/** The boundary after a tool turn: every call has its result, and what was sent meanwhile is taken in. */
export const endToolTurn: StoreCommand<ToolTurnEnd, Boundary> = {
  name: 'endToolTurn',
  run: async (tx, input) => {
    const lane = await lockLaneAt(tx, input.laneKey, input.epoch);
    await writeToolResults(tx, input);
    const { id, parts } = input.message;
    await tx.db
      .updateTable('transcript')
      .set({ parts: JSON.stringify(parts) })
      .where('id', '=', id)
      .execute();
    return steerAt(tx, lane, input);
  },
};

/** For whoever holds the lane's lock. */
export async function writeToolResults(
  tx: Tx,
  { messageId, results }: Omit<ToolResults, keyof Held>,
): Promise<void> {
  for (const result of results) {
    const call = await tx.db
      .updateTable('toolCalls')
      .set({
        state: 'done',
        result: JSON.stringify(result.parts),
        isError: result.isError ? 1 : 0,
        endedAt: tx.now,
      })
      .where('messageId', '=', messageId)
      .where('callId', '=', result.callId)
      .where('state', '<>', 'done')
      .returning('ordinal')
      .executeTakeFirst();
    if (!call) continue;
    await tx.db
      .updateTable('transcript')
      .set({ parts: JSON.stringify(result.parts), isFinished: 1, updatedAt: tx.now })
      .where('id', '=', resultIdOf(messageId, call.ordinal))
      .execute();
  }
}

function resultIdOf(messageId: string, ordinal: number): string {
  return `${messageId}.${ordinal}`;
}

export type Saying = Held & {
  readonly key: string;
  readonly route: ReplyRoute;
  readonly content: OutboundContent;
};

/** Says something beside the answers, once per key: that the model is busy, say. Returns whom to deliver to. */
export const sayNotice: StoreCommand<Saying, Effects> = {
  name: 'sayNotice',
  run: async (tx, input) => {
    const lane = await lockLaneAt(tx, input.laneKey, input.epoch);
    const effects = noEffects();
    const timeline = { laneKey: lane.key, seq: await takeSeq(tx, lane.key) };
    const { key, route, content, runId } = input;
    effects.deliveries.push(
      await insertPart(tx, { key, route, content, purpose: 'notice', runId, timeline }),
    );
    return effects;
  },
};
