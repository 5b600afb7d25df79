/**
 * Records the result of a part's call: sent, unknown, ended, or repaired and repeated. The provisional outcome of the
 * message it answers is amended accordingly.
 */

import { askedWaitMs, longestWaitMs, retryAfterMs } from '#channel-kit/remote-number.ts';
import type { Found } from '#contracts/channel-abilities.ts';
import { plainText } from '#contracts/formatted-text.ts';
import type { SendFailure, SendResult } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { json, type StoredContent } from '../base/json.ts';
import { conversationKeyOf } from '../base/keys.ts';
import { changeRow, findRow, readRow } from '../base/row-access.ts';
import { markUnreachable, moveConversation, movedTo } from './conversation.ts';
import {
  type AskedWait,
  endPart,
  failAnswer,
  reschedulePart,
  type SendOutcome,
  storeReceipts,
} from './end-part.ts';
import { isMarkPart, recordMark } from './mark-part.ts';
import { refundAttempt, removePart } from './part.ts';
import { keepCaption, splitAlbum } from './split-part.ts';

export type PartEnd = Ambiguous & {
  readonly result: SendOutcome;
  /** When an earlier attempt that may have arrived began. */
  readonly mayHaveArrivedSince?: number | undefined;
  readonly showsOneReaction?: boolean | undefined;
};

/** Records the result of the part's call. `asked`: its wait, if the caller has read it. */
export async function recordSend(tx: StepTx, settling: PartEnd, asked?: AskedWait): Promise<void> {
  const { conversationKey, partKey, result, mayHaveArrivedSince } = settling;
  if (isMarkPart(partKey)) return recordMark(tx, settling);
  if (result.kind !== 'sent' && isWaitingNotice(partKey)) return removePart(tx, partKey);
  switch (result.kind) {
    case 'sent':
      await endPart(tx, { key: partKey, state: 'sent', receipts: result.receipts }, asked);
      return storeReceipts(tx, { conversationKey, partKey, receipts: result.receipts });
    case 'retry':
      await reschedulePart(tx, {
        partKey,
        dueAt: tx.now + result.afterMs,
        problem: result.reason,
        mayHaveArrivedSince,
        askedMs: result.askedMs,
      });
      return result.isOutage || result.askedMs !== undefined ? refundAttempt(tx, partKey) : undefined;
    case 'unknown':
      return settleUnknown(tx, settling, result.reason);
    case 'looked-up':
      return settleLookup(tx, settling, result.found);
    case 'exhausted':
      // These attempts didn't arrive, but the one that was cut off before them may have.
      if (mayHaveArrivedSince !== undefined) return settleUnknown(tx, settling, result.reason);
      await keepCaption(tx, partKey);
      return failAnswer(tx, { partKey, problem: result.reason });
    case 'failed':
      return settleFailure(tx, settling, result);
    default:
      return result satisfies never;
  }
}

type FailedSend = Extract<SendResult, { kind: 'failed' }>;

/** How a failed part can still be delivered. */
type Repair =
  | {
      readonly kind: 'part';
      readonly content?: StoredContent;
      readonly route?: ReplyRoute;
      /** A message replaces a change, so no earlier attempt can have sent it. */
      readonly isUnsent?: true;
    }
  | { readonly kind: 'move'; readonly to: ReplyRoute['conversation'] }
  /** Nothing is wrong with the part; it waits until the account works again. */
  | { readonly kind: 'wait'; readonly delayMs: number };

const unauthorizedRetryMs = 30_000;

type RefusedPart = {
  readonly route: ReplyRoute;
  readonly content: StoredContent;
  readonly purpose: string;
};

function repairFor(
  failure: SendFailure,
  { route, content, purpose }: RefusedPart,
  { texts }: StepTx,
): Repair | undefined {
  switch (failure.kind) {
    case 'markup': {
      const plain = withoutSpans(content);
      return plain && { kind: 'part', content: plain };
    }
    case 'thread-gone': {
      const { thread, ...main } = route;
      return thread === undefined ? undefined : { kind: 'part', route: main };
    }
    case 'migrated':
      return { kind: 'move', to: failure.to };
    case 'rejected':
      // The tool reports it to the agent, which decides what to send instead.
      if (purpose === 'tool') return undefined;
      // The message to edit, such as a preview, is gone, but the text must still be sent.
      if (content.kind === 'edit' || content.kind === 'edit-part')
        return { kind: 'part', content: { kind: 'text', text: content.text }, isUnsent: true };
      // A group may allow no reactions, or not this one. Parley's reaction means that a run has failed, so a line of
      // text says that instead.
      if (content.kind === 'reaction') {
        const line = { kind: 'text', text: plainText(texts.internalFailure) } as const;
        return {
          ...{ kind: 'part', content: line, isUnsent: true },
          route: { ...route, replyTo: content.messageId },
        };
      }
      return undefined;
    case 'unauthorised':
      return { kind: 'wait', delayMs: unauthorizedRetryMs };
    case 'unreachable':
      return undefined;
    default:
      return failure satisfies never;
  }
}

/** Follows a conversation that moved while the part was on its way: it is not gone, so the part must still be sent. */
async function followMove(
  tx: Tx,
  failure: SendFailure,
  conversationKey: string,
): Promise<Repair | undefined> {
  const to = failure.kind === 'unreachable' ? await movedTo(tx, conversationKey) : undefined;
  // The store keeps the platform id as plain text.
  return to === undefined ? undefined : { kind: 'move', to: to as ReplyRoute['conversation'] };
}

async function settleFailure(
  tx: StepTx,
  { conversationKey, partKey, mayHaveArrivedSince }: PartEnd,
  { failure, reason: problem }: FailedSend,
): Promise<void> {
  const part = await readRow(tx, 'outbox', partKey, ['route', 'content', 'purpose']);
  const route = json.route(part.route);
  const repair =
    repairFor(failure, { ...part, route, content: json.outbound(part.content) }, tx) ??
    (await followMove(tx, failure, conversationKey));
  if (repair === undefined) {
    if (failure.kind === 'rejected') {
      if (await splitAlbum(tx, { partKey, problem })) return;
      await keepCaption(tx, partKey);
    }
    await failAnswer(tx, { partKey, problem });
    if (failure.kind === 'unreachable') await markUnreachable(tx, conversationKey);
    return;
  }
  const dueAt = tx.now + (repair.kind === 'wait' ? repair.delayMs : 0);
  const isUnsent = repair.kind === 'part' && repair.isUnsent;
  await reschedulePart(tx, {
    partKey,
    dueAt,
    problem,
    mayHaveArrivedSince: isUnsent ? undefined : mayHaveArrivedSince,
  });
  if (repair.kind === 'wait') await refundAttempt(tx, partKey);
  if (repair.kind === 'part' && repair.content) {
    const content = JSON.stringify(repair.content);
    await changeRow(tx, 'outbox', partKey, { content });
  }
  if (repair.kind === 'part' && repair.route) {
    const changed = JSON.stringify(repair.route);
    await changeRow(tx, 'outbox', partKey, { route: changed });
  }
  if (repair.kind === 'move') {
    const toKey = conversationKeyOf({ ...route, conversation: repair.to });
    await moveConversation(tx, { fromKey: conversationKey, from: route.conversation, to: repair.to, toKey });
  }
}

function withoutSpans(content: StoredContent): StoredContent | undefined {
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

/**
 * Resolves an interrupted send: it is repeated while the platform recognizes the repeat, else looked up, else it
 * becomes `unknown` and stays so unless the owner chose otherwise.
 */
type Ambiguous = {
  readonly conversationKey: string;
  readonly partKey: string;
  readonly repeatSafeMs: number;
  readonly canLookUp?: boolean;
  /** The owner has chosen to repeat sends whose result is unknown. */
  readonly resendUnknown: boolean;
};

const firstPauseMs = 1_000;
const longestPauseMs = 15_000;
/** Limits sends of a part that its platform drops every time, since it would hold up its conversation forever. */
const maxSends = 100;
/** How long after the send a lookup that fails for reasons other than an outage is given up, ms. */
const lookupPatienceMs = 600_000;

async function settleUnknown(tx: Tx, ambiguous: Ambiguous, problem: string): Promise<void> {
  const { partKey, repeatSafeMs, canLookUp, resendUnknown } = ambiguous;
  if (repeatSafeMs > 0 || canLookUp) {
    const { attempts, sendingAt } = await sendingOf(tx, partKey);
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (attempts - 1));
    return reschedulePart(tx, { partKey, dueAt: tx.now + pauseMs, problem, mayHaveArrivedSince: sendingAt });
  }
  if (resendUnknown)
    return reschedulePart(tx, { partKey, dueAt: tx.now, problem, mayHaveArrivedSince: undefined });
  return endPart(tx, { key: partKey, state: 'unknown', problem });
}

async function settleLookup(tx: Tx, ambiguous: Ambiguous, found: Found): Promise<void> {
  const { partKey, resendUnknown } = ambiguous;
  switch (found.kind) {
    case 'candidates':
      return settleCandidates(tx, ambiguous, found.messageIds);
    case 'later': {
      const { sendingAt } = await sendingOf(tx, partKey);
      const { reason: problem, afterMs, isOutage } = found;
      if (!isOutage && tx.now - sendingAt > lookupPatienceMs)
        return endPart(tx, { key: partKey, state: 'unknown', problem });
      const dueAt = tx.now + retryAfterMs(afterMs);
      const askedMs = afterMs > longestWaitMs ? askedWaitMs(afterMs) : undefined;
      return reschedulePart(tx, { partKey, dueAt, problem, mayHaveArrivedSince: sendingAt, askedMs });
    }
    case 'unknown': {
      const problem = found.reason;
      if (resendUnknown)
        return reschedulePart(tx, { partKey, dueAt: tx.now, problem, mayHaveArrivedSince: undefined });
      return endPart(tx, { key: partKey, state: 'unknown', problem });
    }
    default:
      return found satisfies never;
  }
}

/** Returns the part's message, the first one that no other part made; undefined: the part never arrived. */
export async function ownOf(
  tx: Tx,
  { conversationKey, partKey }: Pick<Ambiguous, 'conversationKey' | 'partKey'>,
  messageIds: readonly string[],
): Promise<string | undefined> {
  const others = await tx.db
    .selectFrom('receipts')
    .select('messageId')
    .where('conversationKey', '=', conversationKey)
    .where('messageId', 'in', [...messageIds, ''])
    .where('partKey', '<>', partKey)
    .execute();
  const taken = new Set(others.map(({ messageId }) => messageId));
  return messageIds.find((id) => !taken.has(id));
}

async function settleCandidates(tx: Tx, part: Ambiguous, messageIds: readonly string[]): Promise<void> {
  const { conversationKey, partKey } = part;
  const own = await ownOf(tx, part, messageIds);
  if (own === undefined) {
    const problem = 'the send was cut off and had not arrived';
    const { attempts } = await sendingOf(tx, partKey);
    if (attempts >= maxSends) return failAnswer(tx, { partKey, problem });
    return reschedulePart(tx, { partKey, dueAt: tx.now, problem, mayHaveArrivedSince: undefined });
  }
  await endPart(tx, { key: partKey, state: 'sent', receipts: [own] });
  await storeReceipts(tx, { conversationKey, partKey, receipts: [own] });
}

async function sendingOf(
  tx: Tx,
  key: string,
): Promise<{ readonly attempts: number; readonly sendingAt: number }> {
  const row = await readRow(tx, 'outbox', key, ['attempts', 'sendingAt']);
  return { attempts: row.attempts, sendingAt: row.sendingAt ?? tx.now };
}

const suffix = ':waiting';

/** Returns the part key of an item's waiting notice. */
export function waitingNoticeKeyOf(inboxId: string): string {
  return `${inboxId}${suffix}`;
}

/**
 * Says whether the part notifies a sender that their message waits. Such a part is attempted once, needs no record if it
 * doesn't arrive, and never holds up those after it.
 */
function isWaitingNotice(partKey: string): boolean {
  return partKey.endsWith(suffix);
}

/** Says whether the part is a waiting notice whose message no longer waits, so that it isn't worth sending. */
export async function isObsolete(tx: Tx, partKey: string): Promise<boolean> {
  if (!isWaitingNotice(partKey)) return false;
  const row = await findRow(tx, 'inbox', partKey.slice(0, -suffix.length), ['state', 'runId']);
  return row === undefined || !(await isStillWaiting(tx, row));
}

/** Says whether the item waits for its run, or its run waits for room in a budget. */
export async function isStillWaiting(
  tx: Tx,
  { state, runId }: { readonly state: string; readonly runId: string | null },
): Promise<boolean> {
  if (state === 'waiting') return true;
  if (state !== 'taken' || runId === null) return false;
  const run = await findRow(tx, 'runs', runId, ['budgetWait']);
  return run !== undefined && run.budgetWait !== null;
}
