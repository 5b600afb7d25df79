/**
 * Records the result of a part's call: sent, unknown, ended, or repaired and repeated. The provisional outcome of the
 * message it answers is amended accordingly.
 */

import type { Found } from '#contracts/channel-abilities.ts';
import { plainText } from '#contracts/formatted-text.ts';
import type { SendFailure, SendResult } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/conversation-key.ts';
import { json, type StoredContent } from '../base/json.ts';
import { changeRow, readRow } from '../base/row-by-key.ts';
import { type Ambiguous, settleLookup, settleUnknown } from './ambiguous-send.ts';
import type { AskedWait } from './asked-wait.ts';
import { endPart, failAnswer, reschedulePart, storeReceipts } from './end-part.ts';
import { moveConversation, movedTo } from './move-conversation.ts';
import { refundAttempt, removePart } from './part-states.ts';
import { markUnreachable } from './reachability.ts';
import { isWaitingNotice } from './waiting-notice-part.ts';

/** The result of a send, once retries are counted. */
export type SendOutcome =
  | Exclude<SendResult, { readonly kind: 'retry' }>
  | Retry
  /** All attempts are used up, so a `retry` became final. */
  | { readonly kind: 'exhausted'; readonly reason: string }
  /** The result of looking for an earlier attempt. */
  | { readonly kind: 'looked-up'; readonly found: Found };

/** `afterMs`: how long to wait now; `askedMs`: the wait requested by the platform, if any, at most 30 days. */
type Retry = Extract<SendResult, { readonly kind: 'retry' }> & { readonly askedMs?: number };

export type PartEnd = Ambiguous & {
  readonly result: SendOutcome;
  /** When an earlier attempt that may have arrived began. */
  readonly mayStandSince?: number | undefined;
};

/** Records the result of the part's call. `asked`: its wait, if the caller has read it. */
export async function recordSend(tx: StepTx, settling: PartEnd, asked?: AskedWait): Promise<void> {
  const { conversationKey, partKey, result, mayStandSince } = settling;
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
        mayStandSince,
        askedMs: result.askedMs,
      });
      return result.isOutage || result.askedMs !== undefined ? refundAttempt(tx, partKey) : undefined;
    case 'unknown':
      return settleUnknown(tx, settling, result.reason);
    case 'looked-up':
      return settleLookup(tx, settling, result.found);
    case 'exhausted':
      // These attempts didn't arrive, but the one that was cut off before them may have.
      if (mayStandSince !== undefined) return settleUnknown(tx, settling, result.reason);
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

const unauthorisedRetryMs = 30_000;

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
      return { kind: 'wait', delayMs: unauthorisedRetryMs };
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
  { conversationKey, partKey, mayStandSince }: PartEnd,
  { failure, reason: problem }: FailedSend,
): Promise<void> {
  const part = await readRow(tx, 'outbox', partKey, ['route', 'content', 'purpose']);
  const route = json.route(part.route);
  const repair =
    repairFor(failure, { ...part, route, content: json.outbound(part.content) }, tx) ??
    (await followMove(tx, failure, conversationKey));
  if (repair === undefined) {
    await failAnswer(tx, { partKey, problem });
    if (failure.kind === 'unreachable') await markUnreachable(tx, conversationKey);
    return;
  }
  const dueAt = tx.now + (repair.kind === 'wait' ? repair.delayMs : 0);
  const isUnsent = repair.kind === 'part' && repair.isUnsent;
  await reschedulePart(tx, { partKey, dueAt, problem, mayStandSince: isUnsent ? undefined : mayStandSince });
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
