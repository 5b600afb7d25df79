/**
 * What becomes of a part after its call: sent, unknown, ended, or mended and repeated. The provisional
 * outcome of the message it answers follows it.
 */
import type { Outbound, SendFailure, SendResult } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Tx } from '../command.ts';
import { conversationKeyOf } from '../conversation-key.ts';
import { markUnreachable, moveConversation } from '../intake/change-conversation.ts';
import { rememberContext } from '../intake/remember-context.ts';
import { type InboxContent, json } from '../json.ts';
import { isOpenPart } from '../open-rows.ts';
import { amendOutcome } from './reply-outcome.ts';

export type Settled =
  | SendResult
  /** Tried often enough: what was `retry` is final. */
  | { readonly kind: 'exhausted'; readonly reason: string };

export type PartEnd = {
  readonly conversationKey: string;
  readonly partKey: string;
  readonly result: Settled;
  /** The owner's choice to repeat sends whose result is unknown. */
  readonly resendUnknown: boolean;
};

export async function settlePart(tx: Tx, settling: PartEnd): Promise<void> {
  const { conversationKey, partKey, result, resendUnknown } = settling;
  switch (result.kind) {
    case 'sent':
      await endPart(tx, { key: partKey, state: 'sent', receipts: result.receipts });
      return keepReceipts(tx, { conversationKey, partKey, receipts: result.receipts });
    case 'retry':
      await repeatPart(tx, { partKey, dueAt: tx.now + result.afterMs, problem: result.reason });
      return result.isOutage ? uncountTry(tx, partKey) : undefined;
    case 'unknown':
      if (resendUnknown) return repeatPart(tx, { partKey, dueAt: tx.now, problem: result.reason });
      return endPart(tx, { key: partKey, state: 'unknown', problem: result.reason });
    case 'exhausted':
      return failAnswer(tx, { partKey, problem: result.reason });
    case 'failed':
      return settleFailure(tx, { conversationKey, partKey, result });
    default:
      return result satisfies never;
  }
}

type Failed = Extract<SendResult, { kind: 'failed' }>;

/** How a failed part can still be delivered; undefined when it cannot. */
type Mend =
  | { readonly kind: 'content'; readonly content: Outbound['content'] }
  | { readonly kind: 'route'; readonly route: ReplyRoute }
  | { readonly kind: 'move'; readonly to: ReplyRoute['conversation'] }
  /** Nothing is wrong with the part: it waits for the account to be put in order. */
  | { readonly kind: 'wait'; readonly delayMs: number };

const unauthorisedRetryMs = 30_000;

function mendOf(failure: SendFailure, route: ReplyRoute, content: Outbound['content']): Mend | undefined {
  switch (failure.kind) {
    case 'markup': {
      const plain = withoutSpans(content);
      return plain && { kind: 'content', content: plain };
    }
    case 'thread-gone': {
      const { thread, ...main } = route;
      return thread === undefined ? undefined : { kind: 'route', route: main };
    }
    case 'migrated':
      return { kind: 'move', to: failure.to };
    case 'rejected':
      // The message to edit is gone (its preview, say): the text is still owed.
      return content.kind === 'edit'
        ? { kind: 'content', content: { kind: 'text', text: content.text } }
        : undefined;
    case 'unauthorised':
      return { kind: 'wait', delayMs: unauthorisedRetryMs };
    case 'unreachable':
      return undefined;
    default:
      return failure satisfies never;
  }
}

async function settleFailure(
  tx: Tx,
  { conversationKey, partKey, result }: { conversationKey: string; partKey: string; result: Failed },
): Promise<void> {
  const { failure, reason: problem } = result;
  const part = await tx.db
    .selectFrom('outbox')
    .select(['route', 'content'])
    .where('key', '=', partKey)
    .executeTakeFirstOrThrow();
  const route = json.route(part.route);
  const mend = mendOf(failure, route, json.outbound(part.content));
  if (mend === undefined) {
    await failAnswer(tx, { partKey, problem });
    if (failure.kind === 'unreachable') await markUnreachable(tx, conversationKey);
    return;
  }
  await repeatPart(tx, { partKey, dueAt: tx.now + (mend.kind === 'wait' ? mend.delayMs : 0), problem });
  const change = tx.db.updateTable('outbox').where('key', '=', partKey);
  if (mend.kind === 'content') await change.set({ content: JSON.stringify(mend.content) }).execute();
  if (mend.kind === 'route') await change.set({ route: JSON.stringify(mend.route) }).execute();
  if (mend.kind === 'move') {
    const toKey = conversationKeyOf({ ...route, conversation: mend.to });
    await moveConversation(tx, { fromKey: conversationKey, from: route.conversation, to: mend.to, toKey });
  }
}

function withoutSpans(content: Outbound['content']): Outbound['content'] | undefined {
  if (content.kind === 'text' || content.kind === 'edit') {
    return content.text.spans.length === 0
      ? undefined
      : { ...content, text: { text: content.text.text, spans: [] } };
  }
  if (content.kind === 'media' && content.caption && content.caption.spans.length > 0) {
    return { ...content, caption: { text: content.caption.text, spans: [] } };
  }
  return undefined;
}

async function repeatPart(
  tx: Tx,
  { partKey, dueAt, problem }: { partKey: string; dueAt: number; problem: string },
): Promise<void> {
  await tx.db
    .updateTable('outbox')
    .set({ state: 'pending', sendingAt: null, dueAt, problem })
    .where('key', '=', partKey)
    .execute();
}

/** However long the platform was away, the part has all its tries when it is back. */
async function uncountTry(tx: Tx, partKey: string): Promise<void> {
  await tx.db
    .updateTable('outbox')
    .set((eb) => ({ tries: eb('tries', '-', 1) }))
    .where('key', '=', partKey)
    .execute();
}

type End = {
  readonly key: string;
  readonly state: 'sent' | 'unknown' | 'failed';
  readonly problem?: string;
  readonly receipts?: readonly string[];
};

export async function endPart(tx: Tx, { key, state, problem, receipts }: End): Promise<void> {
  const row = await tx.db
    .updateTable('outbox')
    .set({
      state,
      problem: problem ?? null,
      receipts: receipts ? JSON.stringify(receipts) : null,
      endedAt: tx.now,
    })
    .where('key', '=', key)
    .returning(['runId', 'purpose', 'laneKey', 'content'])
    .executeTakeFirst();
  // What could not be taken away was said before: no message of the agent's is missing.
  if (state === 'sent' || !row || isRemoval(row)) return;
  if (row.runId && row.purpose === 'reply') await amendOutcome(tx, row.runId);
  if (row.laneKey && row.purpose !== 'preview') await tellAgent(tx, { laneKey: row.laneKey, state, problem });
}

type Undelivered = {
  readonly laneKey: string;
  readonly state: 'unknown' | 'failed';
  readonly problem: string | undefined;
};

/** A failed delivery is an event: the agent reads of it at its next turn. */
async function tellAgent(
  tx: Tx,
  { laneKey, state, problem = 'no reason known' }: Undelivered,
): Promise<void> {
  const what = state === 'failed' ? 'was not delivered' : 'may or may not have arrived';
  const prompt = `[Note from the gateway] A message of yours ${what}: ${problem}.`;
  const content: InboxContent = {
    text: prompt,
    prompt,
    sender: { id: '', name: 'gateway' },
    sentAt: tx.now,
    attachments: [],
  };
  await rememberContext(tx, { laneKey, account: '', messageId: undefined, content, limit: deliveryNotes });
}

const deliveryNotes = 50;

/** A permanent failure ends the rest of that answer: its end without its beginning helps nobody. */
async function failAnswer(tx: Tx, { partKey, problem }: { partKey: string; problem: string }): Promise<void> {
  await endPart(tx, { key: partKey, state: 'failed', problem });
  const part = await tx.db
    .selectFrom('outbox')
    .select(['answer', 'content'])
    .where('key', '=', partKey)
    .executeTakeFirst();
  if (!part?.answer || isRemoval(part)) return;
  await tx.db
    .updateTable('outbox')
    .set({ state: 'failed', problem: 'an earlier part of the answer failed', endedAt: tx.now })
    .where('answer', '=', part.answer)
    .where(isOpenPart())
    .where('state', '=', 'pending')
    .execute();
}

function isRemoval({ content }: { readonly content: string }): boolean {
  return json.outbound(content).kind === 'delete';
}

type Receipts = {
  readonly conversationKey: string;
  readonly partKey: string;
  readonly receipts: readonly string[];
};

async function keepReceipts(tx: Tx, { conversationKey, partKey, receipts }: Receipts): Promise<void> {
  for (const messageId of receipts) {
    await tx.db
      .insertInto('receipts')
      .values({ conversationKey, messageId, partKey })
      .onConflict((c) => c.doNothing())
      .execute();
  }
}
