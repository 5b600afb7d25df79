/**
 * Writes the states of questions about tool calls; no other file does: `open`, then one end. `void`: nobody needs the
 * answer any more, because the run was stopped or a question beside it was denied. The callers hold the lane's lock.
 */
import type { Selectable } from 'kysely';
import type { CallQuestion } from '#contracts/agent-event.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { MessageId } from '#contracts/ids.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { fillText } from '../../texts/chat-texts.ts';
import { channelOf, readOwnerRoute } from '../alerts/owner-route.ts';
import type { StepTx, StoreQuery, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenCallApproval } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { findRow, insertNewRow, readRow } from '../base/row-access.ts';
import type { CallApprovalsTable } from '../base/tables.ts';
import { type Lane, takeSeq } from '../rows/lane.ts';
import { askQuestion, tellResult } from './approval.ts';

/** A question about a call, as it is stored. */
export type CallApproval = Selectable<CallApprovalsTable>;

/** A call to ask about, under a new id that is short enough to type. */
export type NewCallApproval = CallQuestion & { readonly id: string };

/** Questions about calls of a run. */
export type CallQuestions = {
  readonly runId: string;
  /** Where to ask; if absent, an owner is asked. */
  readonly route: ReplyRoute | undefined;
  /** False if the lane's timeline is no conversation. */
  readonly isInTimeline: boolean;
  readonly runAuthority: Authority;
  /** Owners named in the configuration, `channel:peer`. */
  readonly owners: readonly string[];
  readonly validMs: number;
  readonly questions: readonly NewCallApproval[];
  readonly effects: Pick<Effects, 'deliveries'>;
};

/**
 * Asks about the run's calls, each in a message of its own. Returns when the first question expires; undefined if none
 * is open. Safe to repeat: a call has one question.
 */
export async function askAboutCalls(
  tx: StepTx,
  lane: Lane,
  asking: CallQuestions,
): Promise<number | undefined> {
  const { runId, questions } = asking;
  const asked = await questionsAbout(tx, asking);
  for (const question of questions) {
    const messageId = asked.messages.get(question.callId);
    if (messageId !== undefined) await ask(tx, lane, { ...asking, ...asked, question, messageId });
  }
  const open = await readOpenOf(tx, runId);
  return open.length === 0 ? undefined : Math.min(...open.map(({ expiresAt }) => expiresAt));
}

type AskedRun = {
  readonly askers: readonly string[];
  readonly grantLane: string;
  readonly route: ReplyRoute | undefined;
  /** The message of each call that hasn't started. */
  readonly messages: ReadonlyMap<string, string>;
};

async function questionsAbout(tx: Tx, { runId, route, owners }: CallQuestions): Promise<AskedRun> {
  const calls = await tx.db
    .selectFrom('toolCalls')
    .select(['callId', 'messageId'])
    .where('runId', '=', runId)
    .where('state', '=', 'pending')
    .execute();
  return {
    ...(await readCause(tx, runId)),
    messages: new Map(calls.map(({ callId, messageId }) => [callId, messageId])),
    route: route ?? (await readOwnerRoute.run(tx, { owners })),
  };
}

/** The people who caused a run, by messages to it or to the run at the top of its tree. */
export type RunCause = {
  /** `channel:peer`. */
  readonly askers: readonly string[];
  /** The lane in which the top run began. */
  readonly grantLane: string;
  /** How often `sessions_send` has passed on what caused it; 0 if a person wrote to it. */
  readonly hops: number;
};

/** Reads the people whose messages caused the run, and where they wrote. */
export async function readCause(tx: Tx, runId: string): Promise<RunCause> {
  const { treeId, laneKey } = await readRow(tx, 'runs', runId, ['treeId', 'laneKey']);
  const top = await findRow(tx, 'runs', treeId, ['laneKey']);
  const inRuns = tx.db.selectFrom('inbox').where('runId', 'in', [runId, treeId]);
  const senders = await inRuns
    .select(['account', 'senderId'])
    .distinct()
    .where('senderId', '<>', '')
    .execute();
  const sent = await inRuns.select('content').where('source', '=', 'session').execute();
  const relays = sent.flatMap(({ content }) => json.content(content).relay ?? []);
  const askers = [
    ...senders.map(({ account, senderId }) => `${channelOf(account)}:${senderId}`),
    ...relays.flatMap((relay) => relay.askers),
  ];
  const hops = Math.max(0, ...relays.map((relay) => relay.hops));
  return { askers: [...new Set(askers)], grantLane: top?.laneKey ?? laneKey, hops };
}

/** Reads what caused a run. */
export const readRunCause: StoreQuery<{ readonly runId: string }, RunCause> = {
  query: 'readRunCause',
  run: (tx, { runId }) => readCause(tx, runId),
};

type OneQuestion = Omit<CallQuestions, 'questions'> &
  AskedRun & { readonly question: NewCallApproval; readonly messageId: string };

async function ask(tx: StepTx, lane: Lane, asking: OneQuestion): Promise<void> {
  const {
    runId,
    question,
    messageId,
    route,
    askers,
    grantLane,
    runAuthority,
    validMs,
    isInTimeline,
    effects,
  } = asking;
  const { id, ...asked } = question;
  const isNew = await insertNewRow(tx, 'callApprovals', {
    ...{ id, runId, messageId, laneKey: lane.key, grantLane, runAuthority, ...asked },
    askers: JSON.stringify(askers),
    state: 'open',
    createdAt: tx.now,
    expiresAt: tx.now + validMs,
  });
  if (!isNew || route === undefined) return;
  const timeline = isInTimeline ? { laneKey: lane.key, seq: await takeSeq(tx, lane.key) } : undefined;
  const { approveLabel, approveAlwaysLabel, denyLabel } = tx.texts;
  const choices = [
    { verdict: 'approve', label: approveLabel },
    { verdict: 'always', label: approveAlwaysLabel },
    { verdict: 'deny', label: denyLabel },
  ] as const;
  const text = shownWith(question, fillText(tx.texts.callQuestion, { tool: question.tool }));
  effects.deliveries.push(await askQuestion(tx, { id, route, text, choices, ...(timeline && { timeline }) }));
}

/** Puts a sentence above the call as it was shown. */
function shownWith({ shown }: Pick<CallApproval, 'shown'>, sentence: string): FormattedText {
  const start = sentence.length + 1;
  return {
    text: `${sentence}\n${shown}`,
    spans: [{ kind: 'code-block', start, length: shown.length }],
  };
}

export type CallDecision = {
  readonly state: 'approved' | 'denied' | 'expired' | 'void';
  /** Who decided, as shown to others. */
  readonly by?: string;
  /** The sentence that takes the place of the question. */
  readonly sentence: string;
  /** The message whose button was pressed. */
  readonly pressed?: MessageId | undefined;
};

/**
 * Ends a question by compare and set, and shows its end where it was asked. Returns false if it had ended before. An
 * approval or denial must come before its expiry.
 */
export async function endCallApproval(
  tx: Tx,
  approval: CallApproval,
  { state, by, sentence, pressed }: CallDecision,
  effects: Pick<Effects, 'deliveries'>,
): Promise<boolean> {
  const { id } = approval;
  let ending = tx.db
    .updateTable('callApprovals')
    .set({ state, decidedBy: by ?? null, endedAt: tx.now })
    .where('id', '=', id)
    .where('state', '=', 'open');
  if (state === 'approved' || state === 'denied') ending = ending.where('expiresAt', '>', tx.now);
  const { numUpdatedRows } = await ending.executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) return false;
  await tellEnd(tx, approval, { sentence, pressed }, effects);
  return true;
}

/** Puts the question's end in its place, wherever it was asked. Safe to repeat. */
export async function tellEnd(
  tx: Tx,
  approval: Pick<CallApproval, 'id' | 'shown'>,
  { sentence, pressed }: Pick<CallDecision, 'sentence' | 'pressed'>,
  effects: Pick<Effects, 'deliveries'>,
): Promise<void> {
  const shownIn = await tellResult(tx, { id: approval.id, text: shownWith(approval, sentence), pressed });
  if (shownIn !== undefined) effects.deliveries.push(shownIn);
}

/** Ends all questions about the run's calls that are still open. */
export async function endOpenQuestions(
  tx: StepTx,
  runId: string,
  state: 'expired' | 'void',
  effects: Pick<Effects, 'deliveries'>,
): Promise<void> {
  const text = state === 'void' ? tx.texts.callVoid : tx.texts.callExpired;
  for (const approval of await readOpenOf(tx, runId)) {
    const sentence = fillText(text, { tool: approval.tool });
    await endCallApproval(tx, approval, { state, sentence }, effects);
  }
}

/** Reads the run's open questions. */
export function readOpenOf(tx: Tx, runId: string): Promise<readonly CallApproval[]> {
  return tx.db
    .selectFrom('callApprovals')
    .selectAll()
    .where('runId', '=', runId)
    .where('state', '=', 'open')
    .execute();
}

/** Reads the question with that id; undefined if there is none. */
export function readCallApproval(tx: Tx, id: string): Promise<CallApproval | undefined> {
  return tx.db.selectFrom('callApprovals').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Says whether there is a question about a call with that id. */
export const isCallApproval: StoreQuery<{ readonly id: string }, boolean> = {
  query: 'isCallApproval',
  run: async (tx, { id }) => (await readCallApproval(tx, id)) !== undefined,
};

/** Reads the question about each of the run's calls that has one. */
export function readCallApprovals(tx: Tx, runId: string) {
  return tx.db
    .selectFrom('callApprovals')
    .select(['messageId', 'callId', 'state', 'input', 'digest'])
    .where('runId', '=', runId)
    .execute();
}

/** Reads open questions about calls, newest first; `isDue`: those that are past their expiry. */
export const readOpenCallApprovals: StoreQuery<
  { readonly limit: number; readonly isDue: boolean },
  readonly CallApproval[]
> = {
  query: 'readOpenCallApprovals',
  usesClock: true,
  run: (tx, { limit, isDue }) =>
    tx.db
      .selectFrom('callApprovals')
      .selectAll()
      .where(isOpenCallApproval())
      .where('expiresAt', isDue ? '<=' : '>', tx.now)
      .orderBy('createdAt', 'desc')
      .limit(limit)
      .execute(),
};
