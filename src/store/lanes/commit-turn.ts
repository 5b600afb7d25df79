import type { MessagePart } from '#contracts/message.ts';
import type { Usage } from '#contracts/model.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { Outcome } from '#contracts/outcome.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, Tx } from '../command.ts';
import { type ClaimedDelivery, claimDelivery, type DeliveryPolicy } from '../delivery/deliver.ts';
import { insertPart } from '../delivery/insert-part.ts';
import { closePreview } from '../delivery/record-preview.ts';
import { insertNewRow } from '../insert-row.ts';
import { type Effects, noEffects } from '../intake/proposal.ts';
import { prepared, type Slots } from '../prepared.ts';
import { appendMessage } from '../transcript/append.ts';
import { closeRun, type LaneNext } from './close-run.ts';
import { type Lane, lockLaneAt, takeSeq } from './lane-row.ts';
import { type Boundary, type Held, readSteered, type Steering, steerAt, steerInto } from './steer.ts';

export type AssistantImage = {
  readonly id: string;
  readonly sessionId: string;
  readonly parts: readonly MessagePart[];
  readonly model: string | undefined;
};

export type ModelCall = {
  readonly id: string;
  readonly model: string;
  readonly usage: Usage;
  readonly cost: number;
  readonly latencyMs: number;
};

export type ReplyPart = {
  readonly route: ReplyRoute;
  readonly content: OutboundContent;
  readonly purpose: 'reply' | 'notice';
};

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
    const { message, runId } = input;
    await writeAssistant(tx, { message, runId, isFinished: true });
    await recordModelCall(tx, input.modelCall, { runId, sessionId: message.sessionId });
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

export type Answer = Held &
  Steering & {
    readonly message: AssistantImage;
    readonly modelCall: ModelCall | undefined;
    readonly parts: readonly ReplyPart[];
    /** The preview that the parts replace or take away. */
    readonly preview: string | undefined;
    readonly outcome: Outcome;
    readonly outcomeReason?: string;
    readonly mayGoOn: boolean;
    /** Claims the reply's first part for a holder that sends at once; absent when another process sends. */
    readonly sender?: DeliveryPolicy | undefined;
  };

export type Answered = Boundary & {
  /** How the lane was left; undefined when a steer extends the run, or it was asked to stop. */
  readonly next: LaneNext | undefined;
  readonly effects: Effects;
  readonly claimed: ClaimedDelivery | undefined;
};

/**
 * Steps 6 and 7 for a message without tool calls: message, reply parts, and either the steers that
 * extend the run or its end, in one transaction. A message that arrives is in front of this step and
 * taken, or behind it and starts the next run. Of a run that was asked to stop before this step nothing
 * is written: it is left for `endRun`.
 */
export const commitAnswer: StoreCommand<Answer, Answered> = {
  name: 'commitAnswer',
  run: async (tx, input) => {
    const lane = await lockLaneAt(tx, input.laneKey, input.epoch);
    const { message, runId, outcome, outcomeReason, mayGoOn } = input;
    const effects = noEffects();
    const run = await readSteered(tx, runId);
    const { cancelReason } = run;
    const stopped = { steers: [], cancelReason, next: undefined, effects, claimed: undefined };
    if (cancelReason !== undefined) return stopped;
    const isFirst = await writeAssistant(tx, { message, runId, isFinished: true });
    await recordModelCall(tx, input.modelCall, { runId, sessionId: message.sessionId });
    // The finished message is the idempotency key of its reply.
    if (isFirst) await insertReply(tx, lane, { runId, answer: message.id, parts: input.parts, effects });
    await closePreview(tx, input.preview);
    const claimed = await claimReply(tx, input.sender, effects);
    const steers = await steerInto(tx, lane, { ...input, run });
    if (steers.length > 0) {
      await forgiveCrashes(tx, runId);
      return { steers, cancelReason, next: undefined, effects, claimed };
    }
    const next = await closeRun(tx, lane, { runId, endReason: 'natural', outcome, outcomeReason, mayGoOn });
    return { steers, cancelReason, next, effects, claimed };
  },
};

/** One commit less between the answer and its delivery: the conversation's head part is claimed with it. */
async function claimReply(
  tx: Tx,
  policy: DeliveryPolicy | undefined,
  effects: Effects,
): Promise<ClaimedDelivery | undefined> {
  const [conversationKey] = effects.deliveries;
  if (policy === undefined || conversationKey === undefined) return undefined;
  const delivery = await claimDelivery.run(tx, { ...policy, conversationKey });
  if (delivery.kind !== 'part') return undefined;
  effects.deliveries.length = 0;
  return { conversationKey, delivery };
}

/** A run that has answered made progress: what counts against it are crashes from here on. */
async function forgiveCrashes(tx: Tx, runId: string): Promise<void> {
  await tx.db.updateTable('runs').set({ tries: 1 }).where('id', '=', runId).execute();
}

export type Ending = Held & {
  readonly endReason: string;
  readonly detail: string | undefined;
  readonly outcome: Outcome;
  readonly outcomeReason?: string;
  /** The message that was cut off, with its finish part. */
  readonly message: AssistantImage | undefined;
  readonly modelCall: ModelCall | undefined;
  readonly parts: readonly ReplyPart[];
  /** The preview that the parts take away. */
  readonly preview: string | undefined;
  readonly mayGoOn: boolean;
};

/** Step 7 for a run that did not end by itself: timeout, abort, error. The lane drains all the same. */
export const endRun: StoreCommand<Ending, { readonly next: LaneNext; readonly effects: Effects }> = {
  name: 'endRun',
  run: async (tx, input) => {
    const lane = await lockLaneAt(tx, input.laneKey, input.epoch);
    const { runId, message, endReason, detail, outcome, outcomeReason, mayGoOn } = input;
    const effects = noEffects();
    if (message) await writeAssistant(tx, { message, runId, isFinished: true });
    await recordModelCall(tx, input.modelCall, { runId, sessionId: lane.sessionId });
    await insertReply(tx, lane, { runId, answer: `${runId}:end`, parts: input.parts, effects });
    await closePreview(tx, input.preview);
    const next = await closeRun(tx, lane, { runId, endReason, detail, outcome, outcomeReason, mayGoOn });
    return { next, effects };
  },
};

/** Returns false when the message had been finished before: this is then a repeat. */
async function writeAssistant(
  tx: Tx,
  { message, runId, isFinished }: { message: AssistantImage; runId: string; isFinished: boolean },
): Promise<boolean> {
  const { id, sessionId, parts, model } = message;
  const known = await storedMessage.first(tx, { id });
  if (!known) {
    await appendMessage(tx, { id, sessionId, role: 'assistant', parts, model, runId, isFinished });
    return true;
  }
  if (known.isFinished === 1) return false;
  const image = { parts: JSON.stringify(parts), isFinished: isFinished ? 1 : 0, model: model ?? null };
  await updateMessage.run(tx, { id, ...image, now: tx.now });
  return true;
}

const storedMessage = prepared((db, of: Slots<{ id: string }>) =>
  db.selectFrom('transcript').select('isFinished').where('id', '=', of.id),
);

type Image = { id: string; parts: string; isFinished: number; model: string | null; now: number };

const updateMessage = prepared((db, of: Slots<Image>) =>
  db
    .updateTable('transcript')
    .set((eb) => ({
      parts: of.parts,
      isFinished: of.isFinished,
      updatedAt: of.now,
      model: eb.fn.coalesce(of.model, 'model'),
    }))
    .where('id', '=', of.id),
);

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

async function recordModelCall(
  tx: Tx,
  call: ModelCall | undefined,
  owner: { runId: string; sessionId: string },
): Promise<void> {
  if (!call) return;
  const { usage, cost, id, model, latencyMs } = call;
  await insertNewRow(tx, 'modelCalls', { id, ...owner, model, ...usage, cost, latencyMs, at: tx.now });
  await chargeSession.run(tx, {
    sessionId: owner.sessionId,
    cost,
    promptTokens: usage.inputTokens + usage.cacheWriteTokens,
    completionTokens: usage.outputTokens + usage.cacheReadTokens,
  });
}

type Charge = { sessionId: string; cost: number; promptTokens: number; completionTokens: number };

const chargeSession = prepared((db, of: Slots<Charge>) =>
  db
    .updateTable('sessions')
    .set((eb) => ({
      cost: eb('cost', '+', of.cost),
      promptTokens: of.promptTokens,
      completionTokens: of.completionTokens,
    }))
    .where('id', '=', of.sessionId),
);

type Reply = {
  readonly runId: string;
  readonly answer: string;
  readonly parts: readonly ReplyPart[];
  readonly effects: Effects;
};

async function insertReply(tx: Tx, lane: Lane, { runId, answer, parts, effects }: Reply): Promise<void> {
  if (parts.length === 0) return;
  const { nextOrdinal } = await advanceOrdinal.one(tx, { runId, count: parts.length });
  const first = nextOrdinal - parts.length;
  for (const [index, part] of parts.entries()) {
    const timeline = { laneKey: lane.key, seq: await takeSeq(tx, lane.key) };
    const key = `${runId}:${first + index}`;
    effects.deliveries.push(await insertPart(tx, { ...part, key, runId, answer, timeline }));
  }
}

const advanceOrdinal = prepared((db, of: Slots<{ runId: string; count: number }>) =>
  db
    .updateTable('runs')
    .set((eb) => ({ nextOrdinal: eb('nextOrdinal', '+', of.count) }))
    .where('id', '=', of.runId)
    .returning('nextOrdinal'),
);

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
