import { closeAlert } from '../alerts/alert.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { isFailedPart, isOpenPart, isUnknownPart } from '../base/index-predicates.ts';
import { json, type StoredContent } from '../base/json.ts';
import { findRow } from '../base/row-access.ts';
import { lockLanes } from '../rows/lane.ts';
import { endAskedWait, reviseOutcome } from './end-part.ts';
import { dismissPart, lockConversation, reopenPart } from './part.ts';

/** A part that is unknown or failed, for `parley outbox list`. */
export type UndeliveredPart = {
  readonly key: string;
  readonly conversation: string;
  readonly state: string;
  readonly attempts: number;
  readonly problem: string | undefined;
  readonly createdAt: number;
  /** The beginning of its text, by which the operator recognizes it. */
  readonly excerpt: string;
};

/** Reads parts that aren't delivered: waiting, on their way, unknown or failed; newest first. */
export const readUndelivered: StoreQuery<{ readonly limit: number }, readonly UndeliveredPart[]> = {
  query: 'readUndelivered',
  run: async (tx, { limit }) => {
    // Each state has its own index, so that the history, which consists mostly of sent parts, isn't scanned.
    const found = await Promise.all(
      [isOpenPart(), isUnknownPart(), isFailedPart()].map((isOfState) =>
        tx.db
          .selectFrom('outbox')
          .select(['key', 'conversationKey', 'state', 'attempts', 'problem', 'createdAt', 'content'])
          .where(isOfState)
          .where('purpose', '<>', 'preview')
          .orderBy('createdAt', 'desc')
          .limit(limit)
          .execute(),
      ),
    );
    const rows = found.flat().toSorted((a, b) => b.createdAt - a.createdAt);
    return rows.slice(0, limit).map(({ conversationKey, content, problem, ...row }) => ({
      ...row,
      conversation: conversationKey,
      problem: problem ?? undefined,
      excerpt: excerptOf(content),
    }));
  },
};

function excerptOf(stored: string): string {
  const content = json.outbound(stored);
  const text = textOf(content);
  return text.replace(/\s+/g, ' ').slice(0, 80).toWellFormed();
}

function textOf(content: StoredContent): string {
  if (content.kind === 'action') return content.summary;
  return content.kind === 'text' || content.kind === 'edit' ? content.text.text : `(${content.kind})`;
}

/** The result of an operator's action on a part. */
export type OperatorResult = 'done' | 'not-found' | 'not-possible';

/** Sends an unknown or failed part again for the operator, who knows that it may arrive twice. */
export const retryPart: StoreCommand<{ readonly key: string }, OperatorResult> = {
  name: 'retryPart',
  run: async (tx, { key }) => {
    await lockPlaceOf(tx, key);
    return operated(tx, key, await reopenPart(tx, key));
  },
};

/** Gives up a pending part for the operator, or acknowledges an unknown one. A sent part stays sent. */
export const dropPart: StoreCommand<{ readonly key: string }, OperatorResult> = {
  name: 'dropPart',
  run: async (tx, { key }) => {
    await lockPlaceOf(tx, key);
    return operated(tx, key, await dismissPart(tx, key));
  },
};

/**
 * Locks the lane, as a failed delivery does when it changes an answer's parts and the items that it answers. Then locks
 * the conversation, as a claim does from before it reads a part until it has marked it, so that no dropped part is
 * sent.
 */
async function lockPlaceOf(tx: Tx, key: string): Promise<void> {
  const part = await findRow(tx, 'outbox', key, ['laneKey', 'conversationKey']);
  if (part?.laneKey) await lockLanes(tx, [part.laneKey]);
  if (part) await lockConversation(tx, part.conversationKey);
}

type ChangedPart = {
  readonly runId: string | null;
  readonly answer: string | null;
  readonly conversationKey: string;
};

async function operated(tx: Tx, key: string, changed: ChangedPart | undefined): Promise<OperatorResult> {
  if (changed) {
    const { runId, answer } = changed;
    if (runId !== null && answer !== null) await reviseOutcome(tx, { runId, answer });
    await endNoticeIfSettled(tx, changed.conversationKey);
    await endAskedWait(tx, changed.conversationKey);
    return 'done';
  }
  const row = await findRow(tx, 'outbox', key, ['key']);
  return row ? 'not-possible' : 'not-found';
}

/** Closes the alert once the operator has dealt with every unknown part of the conversation. */
async function endNoticeIfSettled(tx: Tx, conversationKey: string): Promise<void> {
  const unknown = await tx.db
    .selectFrom('outbox')
    .select('key')
    .where('conversationKey', '=', conversationKey)
    .where(isUnknownPart())
    .where('purpose', '<>', 'preview')
    .limit(1)
    .executeTakeFirst();
  if (!unknown) await closeAlert(tx, { kind: 'delivery-unknown', subject: conversationKey });
}
