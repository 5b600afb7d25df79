/**
 * Shows and takes off marks (`contracts/mark.ts`). A message's mark is one part, which is rewritten whenever another
 * mark is to be shown; once the call has succeeded the row says what the message bears, until that is taken off. Such
 * parts come after all others of their conversation. The network's result is kept in this row alone, since the step
 * that records it holds the lock of the conversation, not that of the lane.
 */
import { sql } from 'kysely';
import type { MessageId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import type { Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, findRow } from '../base/row-access.ts';
import type { SendOutcome } from './end-part.ts';
import {
  closePart,
  refundAttempt,
  removePart,
  reopenWith,
  returnPart,
  takePlace,
  writePart,
} from './part.ts';

type Reaction = Extract<OutboundContent, { readonly kind: 'reaction' }>;

/** The call that a mark's part makes, or has made. `replaces`: the emoji that the message bears until then. */
type MarkContent = Reaction & { readonly replaces?: string };

const suffix = ':mark';

/** Returns the part key of an item's mark. */
function markKeyOf(inboxId: string): string {
  return `${inboxId}${suffix}`;
}

/** Says whether the part shows or takes off a mark. */
export function isMarkPart(partKey: string): boolean {
  return partKey.endsWith(suffix);
}

/**
 * The emoji that an item is to bear now, if it has a row in `marks`. Join `inbox` by its id, and `runs` by the id of
 * the item's run.
 */
export function wantedMark() {
  return sql<string | null>`case
    when "inbox"."state" = 'waiting' then "marks"."waiting"
    when "inbox"."state" = 'taken' and "runs"."budgetWait" is not null then coalesce("marks"."waiting", "marks"."taken")
    when "inbox"."state" = 'taken' then "marks"."taken" end`;
}

const markedItem = prepared((db, of: QueryParams<{ inboxId: string }>) =>
  db
    .selectFrom('inbox')
    .leftJoin('marks', 'marks.inboxId', 'inbox.id')
    .leftJoin('runs', 'runs.id', 'inbox.runId')
    .select(['inbox.runId', wantedMark().as('wanted')])
    .where('inbox.id', '=', of.inboxId),
);

/** The mark of a message, as far as the network has confirmed it. */
export type ShownMark =
  /** `isQueued`: a change waits to be sent. */
  | { readonly kind: 'known'; readonly emoji: string | undefined; readonly isQueued: boolean }
  /** A call is under way, or its result is still to be recorded. */
  | { readonly kind: 'busy' };

/** Reads what the message bears. The caller holds the conversation's lock. */
export async function readShownMark(tx: Tx, inboxId: string): Promise<ShownMark> {
  const row = await findRow(tx, 'outbox', markKeyOf(inboxId), ['state', 'content', 'sendingAt']);
  if (row === undefined) return { kind: 'known', emoji: undefined, isQueued: false };
  const { emoji, isRemoved, replaces } = contentOf(row);
  switch (row.state) {
    case 'sending':
      return { kind: 'busy' };
    case 'pending':
      if (row.sendingAt !== null) return { kind: 'busy' };
      return { kind: 'known', emoji: isRemoved ? emoji : replaces, isQueued: true };
    case 'sent':
      return { kind: 'known', emoji, isQueued: false };
    default:
      return { kind: 'known', emoji: undefined, isQueued: false };
  }
}

type MarkChange = {
  readonly inboxId: string;
  readonly route: ReplyRoute;
  readonly messageId: MessageId;
  /** The emoji to show; undefined: none. */
  readonly wanted: string | undefined;
  /** The emoji that the message bears. */
  readonly shown: string | undefined;
};

/** Queues the change; returns the conversation to deliver in. The caller holds the conversation's lock. */
export async function queueMark(tx: Tx, change: MarkChange): Promise<string | undefined> {
  const { inboxId, messageId, wanted, shown } = change;
  const key = markKeyOf(inboxId);
  if (wanted === shown) {
    await settleAs(tx, key, { messageId, emoji: shown });
    return undefined;
  }
  const content: MarkContent = {
    kind: 'reaction',
    messageId,
    emoji: wanted ?? shown ?? '',
    ...(wanted === undefined && { isRemoved: true }),
    ...(wanted !== undefined && shown !== undefined && { replaces: shown }),
  };
  const known = await findRow(tx, 'outbox', key, ['conversationKey']);
  if (known) {
    await reopenWith(tx, key, { content: JSON.stringify(content), dueAt: tx.now });
    return known.conversationKey;
  }
  const at = await takePlace(tx, withoutQuote(change.route));
  if (at.isUnreachable) return undefined;
  const part = { key, route: at.route, content, purpose: 'notice' } as const;
  await writePart(tx, part, { ...at, place: afterOthers + at.place, state: 'pending' });
  return at.conversationKey;
}

/** Added to the places of marks: no conversation has as many parts. */
const afterOthers = 2 ** 40;

/** Records that the message bears this emoji, or none, with nothing left to send. */
async function settleAs(
  tx: Tx,
  key: string,
  { messageId, emoji }: { readonly messageId: MessageId; readonly emoji: string | undefined },
): Promise<void> {
  if (emoji === undefined) return removePart(tx, key);
  const content: Reaction = { kind: 'reaction', messageId, emoji };
  await changeRow(tx, 'outbox', key, { content: JSON.stringify(content) });
  await closePart(tx, key, { state: 'sent', problem: null, receipts: null });
}

/** Forgets the mark, because another reaction has replaced it or nothing can be done about it. */
export function forgetMark(tx: Tx, inboxId: string): Promise<void> {
  return removePart(tx, markKeyOf(inboxId));
}

/** Whether the network shows one reaction of the bot per message. */
type Network = { readonly showsOneReaction?: boolean | undefined };

/** Returns the call to make: where reactions add up, the old one goes first. */
export function callOf<Content extends OutboundContent>(content: Content, network: Network): Content;
export function callOf(content: OutboundContent, { showsOneReaction }: Network): OutboundContent {
  if (content.kind !== 'reaction') return content;
  const { replaces, ...reaction }: MarkContent = content;
  if (replaces === undefined || showsOneReaction) return reaction;
  return { ...reaction, emoji: replaces, isRemoved: true };
}

/** Says whether the call that is due only takes a reaction off. */
function takesOff({ isRemoved, replaces }: MarkContent, { showsOneReaction }: Network): boolean {
  return isRemoved === true || (replaces !== undefined && !showsOneReaction);
}

type MarkRow = {
  readonly key: string;
  readonly content: string;
  readonly sendingAt: number | null;
  readonly attempts: number;
  readonly createdAt: number;
};

/**
 * Drops a mark whose turn has come but that isn't right any more or has waited too long; returns whether it did. One
 * that is to be taken off is never stale, since taking it off twice does no harm, unless the run has put another reaction in its
 * place: its parts come before this one.
 */
export async function dropStaleMark(
  tx: Tx,
  row: MarkRow,
  { expireMs, ...network }: Network & { readonly expireMs?: { readonly reaction: number } },
): Promise<boolean> {
  const content = contentOf(row);
  const isOld = expireMs !== undefined && tx.now - row.createdAt > expireMs.reaction;
  const inboxId = row.key.slice(0, -suffix.length);
  const item = await markedItem.first(tx, { inboxId });
  const others = item?.runId ? await readReactions(tx, item.runId, content.messageId) : [];
  if (others.some((emoji) => network.showsOneReaction || emoji === callOf(content, network).emoji)) {
    await removePart(tx, row.key);
    return true;
  }
  const isRight = content.isRemoved || item?.wanted === content.emoji;
  if (isRight && !isOld && row.attempts < maxAttempts) return false;
  await giveUp(tx, row.key, content, { ...network, mayHaveArrived: row.sendingAt !== null });
  return true;
}

/** Reads what the run itself has reacted with: the agent's own reactions, and the sign that the run failed. */
async function readReactions(tx: Tx, runId: string, messageId: string): Promise<readonly string[]> {
  const parts = await tx.db
    .selectFrom('outbox')
    .select('content')
    .where('runId', '=', runId)
    .where('content', 'like', '%"reaction"%')
    .where('state', '<>', 'failed')
    .execute();
  const reactions = parts.map(({ content }) => json.outbound(content));
  return reactions.flatMap((one) =>
    one.kind === 'reaction' && one.messageId === messageId ? [one.emoji] : [],
  );
}

/** How often a reaction is taken off, not counting attempts while the network is away. */
const maxAttempts = 5;
/** Pause between two calls about one message: Discord allows four reactions a second in a channel. */
const pauseMs = 1_000;

type MarkResult = Network & {
  readonly partKey: string;
  readonly result: SendOutcome;
  /** When an earlier attempt that may have arrived began. */
  readonly mayHaveArrivedSince?: number | undefined;
};

/** Records the result of a mark's call. */
export async function recordMark(
  tx: Tx,
  { partKey: key, result, mayHaveArrivedSince, showsOneReaction }: MarkResult,
): Promise<void> {
  const network = { showsOneReaction };
  const row = await findRow(tx, 'outbox', key, ['content', 'attempts']);
  if (row === undefined) return;
  const content = contentOf(row);
  const { replaces, ...reaction } = content;
  const isOff = takesOff(content, network);
  if (isOff && !content.isRemoved && (result.kind === 'sent' || result.kind === 'failed'))
    return reopenWith(tx, key, { content: JSON.stringify(reaction), dueAt: tx.now + pauseMs });
  if (result.kind === 'sent') return settleAs(tx, key, isOff ? { ...reaction, emoji: undefined } : reaction);
  if (isOff && result.kind !== 'failed' && row.attempts < maxAttempts) {
    const waitMs = result.kind === 'retry' ? Math.max(pauseMs, result.afterMs) : pauseMs;
    const problem = 'reason' in result ? result.reason : result.kind;
    await returnPart(tx, { partKey: key, dueAt: tx.now + waitMs, problem, mayHaveArrivedSince: undefined });
    return result.kind === 'retry' && result.isOutage ? refundAttempt(tx, key) : undefined;
  }
  const mayHaveArrived = mayHaveArrivedSince !== undefined || isUncertain(result);
  await giveUp(tx, key, content, { ...network, mayHaveArrived });
}

/** Says whether the call may have had its effect: networks report an unanswered reaction as safe to repeat. */
function isUncertain(result: SendOutcome): boolean {
  if (result.kind === 'retry') return result.askedMs === undefined && result.isOutage !== true;
  return result.kind !== 'failed';
}

/** Ends a mark that isn't tried again. What may be on the message stays recorded, so that it is taken off later. */
async function giveUp(
  tx: Tx,
  key: string,
  content: MarkContent,
  { mayHaveArrived, ...network }: Network & { readonly mayHaveArrived: boolean },
): Promise<void> {
  const { messageId, emoji, isRemoved, replaces } = content;
  const isSet = mayHaveArrived && !takesOff(content, network);
  return settleAs(tx, key, { messageId, emoji: isRemoved ? undefined : isSet ? emoji : replaces });
}

function contentOf({ content }: { readonly content: string }): MarkContent {
  // Written by `queueMark`.
  return json.outbound(content) as MarkContent;
}
