import type { Acceptance } from '#contracts/acceptance.ts';
import type { Tx } from '../command.ts';
import { endAskedWait } from '../delivery/asked-wait.ts';
import { ensureConversation, takePlace } from '../delivery/insert-part.ts';
import { amendOutcome } from '../delivery/reply-outcome.ts';
import { json } from '../json.ts';
import { lockLane } from '../lanes/lane-row.ts';
import { endTrouble, noteTrouble } from '../notices/note-trouble.ts';
import { isOpenItem, isOpenPart } from '../open-rows.ts';
import { prepared, type Slots } from '../prepared.ts';
import type { Accepting } from './accepting.ts';
import { openLedger } from './open-ledger.ts';
import type { Decision } from './proposal.ts';

type Migration = Extract<Decision, { kind: 'migrate' }>;
type Membership = Extract<Decision, { kind: 'membership' }>;

/**
 * The conversation has a new id. Its session key goes on being made of the first one, so session,
 * settings and allow-list entry stay; what waits to be sent moves along. Repeating it changes nothing.
 */
export async function migrateConversation(
  tx: Tx,
  accepting: Accepting,
  { from, to, toKey }: Migration,
): Promise<Acceptance> {
  await moveConversation(tx, { fromKey: accepting.proposal.conversationKey, from, toKey, to });
  accepting.effects.deliveries.push(toKey);
  return { kind: 'ignored', reason: 'migrated' };
}

export type Move = {
  readonly fromKey: string;
  readonly from: string;
  readonly toKey: string;
  readonly to: string;
};

export async function moveConversation(tx: Tx, { fromKey, from, toKey, to }: Move): Promise<void> {
  await ensureConversation(tx, fromKey);
  await ensureConversation(tx, toKey);
  const [old, next] = [await readPlace(tx, fromKey), await readPlace(tx, toKey)];
  // Two ids that name each other would send what waits there in a circle.
  if (fromKey === toKey || next?.movedTo === from) return;
  if (old?.movedTo !== to) {
    await noteTrouble(tx, { kind: 'conversation-moved', subject: fromKey, values: { to } });
    await tx.db.updateTable('conversations').set({ movedTo: to }).where('key', '=', fromKey).execute();
    const inherited = { canonicalId: old?.canonicalId ?? from, activation: old?.activation ?? null };
    await tx.db.updateTable('conversations').set(inherited).where('key', '=', toKey).execute();
  }
  const parts = await tx.db
    .selectFrom('outbox')
    .select(['key', 'route', 'answer'])
    .where('conversationKey', '=', fromKey)
    .where(isOpenPart())
    .where('state', '=', 'pending')
    .orderBy('place')
    .execute();
  const isMoved = new Set<string>();
  for (const part of parts) {
    const { route, place: last, conversationKey } = await takePlace(tx, json.route(part.route));
    const place = (await placeBeforeRest(tx, { part, conversationKey, isMoved })) ?? last;
    isMoved.add(part.key);
    await tx.db
      .updateTable('outbox')
      .set({ route: JSON.stringify(route), place, conversationKey, dueAt: tx.now })
      .where('key', '=', part.key)
      .execute();
  }
  await endAskedWait(tx, fromKey, true);
}

type Late = {
  readonly part: { readonly answer: string | null };
  readonly conversationKey: string;
  /** Moved together with the part, in their order. */
  readonly isMoved: ReadonlySet<string>;
};

/** What was on its way while the rest of its answer moved still goes out in front of that rest. */
async function placeBeforeRest(
  tx: Tx,
  { part, conversationKey, isMoved }: Late,
): Promise<number | undefined> {
  if (part.answer === null) return undefined;
  const rest = await tx.db
    .selectFrom('outbox')
    .select(['key', 'place'])
    .where('conversationKey', '=', conversationKey)
    .where(isOpenPart())
    .where('answer', '=', part.answer)
    .orderBy('place')
    .execute();
  return rest.some(({ key }) => isMoved.has(key)) ? undefined : rest[0] && rest[0].place - 1;
}

function readPlace(tx: Tx, key: string) {
  return tx.db
    .selectFrom('conversations')
    .select(['canonicalId', 'activation', 'movedTo'])
    .where('key', '=', key)
    .executeTakeFirst();
}

export async function changeMembership(
  tx: Tx,
  accepting: Accepting,
  { isMember }: Membership,
): Promise<Acceptance> {
  const key = accepting.proposal.conversationKey;
  await ensureConversation(tx, key);
  // The bot leaves the old id of a group that lives on under another.
  if ((await movedTo(tx, key)) !== undefined) return { kind: 'ignored', reason: 'migrated' };
  if (isMember) await markReachable(tx, key);
  else await markUnreachable(tx, key);
  return { kind: 'ignored', reason: 'membership' };
}

/** Where a conversation lives on, as its own network calls it. */
export async function movedTo(tx: Tx, key: string): Promise<string | undefined> {
  return (await readPlace(tx, key))?.movedTo ?? undefined;
}

/** Blocked or removed: queue and outbox of the conversation end with a recorded outcome. */
export async function markUnreachable(tx: Tx, key: string): Promise<void> {
  await lockLanesOf(tx, key);
  await tx.db.updateTable('conversations').set({ unreachableAt: tx.now }).where('key', '=', key).execute();
  await noteTrouble(tx, { kind: 'conversation-unreachable', subject: key });
  const held = tx.db.selectFrom('inbox').select('id').where('conversationKey', '=', key).where(isOpenItem());
  const ids = (await held.where('state', '=', 'held').execute()).map(({ id }) => id);
  await openLedger(tx, { ids });
  await tx.db
    .updateTable('inbox')
    .set({ state: 'ended', outcome: 'failed', outcomeReason: 'unreachable' })
    .where('conversationKey', '=', key)
    .where(isOpenItem())
    .execute();
  const ended = await tx.db
    .updateTable('outbox')
    .set({ state: 'failed', problem: 'the conversation is unreachable', endedAt: tx.now })
    .where('conversationKey', '=', key)
    .where(isOpenPart())
    .where('state', '=', 'pending')
    .returning(['runId', 'answer'])
    .execute();
  await endAskedWait(tx, key, true);
  for (const { runId, answer } of new Map(ended.map((part) => [part.answer, part])).values()) {
    if (runId !== null && answer !== null) await amendOutcome(tx, { runId, answer });
  }
}

/** The lanes of what waits there, in key order: a claim takes a waiting message, or finds it ended. */
async function lockLanesOf(tx: Tx, key: string): Promise<void> {
  const lanes = await tx.db
    .selectFrom('inbox')
    .select('laneKey')
    .distinct()
    .where('conversationKey', '=', key)
    .where(isOpenItem())
    .orderBy('laneKey')
    .execute();
  for (const { laneKey } of lanes) await lockLane(tx, laneKey);
}

/** Who writes can be written to, whatever an earlier failure said. */
export async function markReachable(tx: Tx, key: string): Promise<void> {
  const changed = await clearUnreachable.run(tx, { key });
  if (changed > 0) await endTrouble(tx, { kind: 'conversation-unreachable', subject: key });
}

const clearUnreachable = prepared((db, of: Slots<{ key: string }>) =>
  db
    .updateTable('conversations')
    .set({ unreachableAt: null })
    .where('key', '=', of.key)
    .where('unreachableAt', 'is not', null),
);
