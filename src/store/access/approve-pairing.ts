import { timingSafeEqual } from 'node:crypto';
import type { StepTx, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { insertNotice } from '../delivery/insert-notice.ts';
import { takeAttempt } from './pairing-attempts.ts';
import { blankNotice } from './request-pairing.ts';
import { lockAccount, type Role } from './sender-roles.ts';

/** An approval of a pairing request. */
export type Approval = {
  readonly codeHash: string;
  /** Who approves: `console`, or `channel:peer`. */
  readonly by: string;
  /** `owner-if-none`: the first person who is approved, as long as no row names an owner. */
  readonly role: Role | 'owner-if-none';
  /**
   * In chat: the conversation in which `by` was named the person before. Without that nobody is let in.
   * Absent on the console, where the list is read.
   */
  readonly offeredIn?: string;
};

export type Approved =
  | {
      readonly kind: 'approved';
      readonly ref: string;
      readonly name: string;
      readonly role: Role;
      readonly conversationKey: string;
    }
  | Unapproved;

type Unapproved =
  | { readonly kind: 'unknown' }
  /** Too many codes within a minute: this one was not even looked at. */
  | { readonly kind: 'limited' };

/**
 * A code lets in the very person who was shown it, on the account that showed it, once: the row that
 * holds it is deleted with the approval. Repeating it is an attempt with an unknown code.
 */
export async function approvePairing(tx: StepTx, approval: Approval): Promise<Approved> {
  if ((await takeAttempt(tx)) === 'limited') return { kind: 'limited' };
  const found = await findRequest(tx, approval.codeHash);
  if (!found) return { kind: 'unknown' };
  const { account, peerId, id, ref, name } = found;
  await lockAccount(tx, account);
  const own = tx.db.deleteFrom('pairings').where('id', '=', id).where('codeHash', '=', approval.codeHash);
  const { by, offeredIn } = approval;
  const request = await (offeredIn === undefined
    ? own
    : own.where('offeredTo', '=', by).where('offeredIn', '=', offeredIn)
  )
    .returning(['route', 'noticeKey'])
    .executeTakeFirst();
  // Revoked while this waited for the account, or not offered.
  if (!request) return { kind: 'unknown' };
  await blankNotice(tx, request.noticeKey);
  const role = await enterPerson(tx, { account, peerId, ref, name }, approval);
  const conversationKey = await insertNotice(tx, {
    key: `pairing:${id}:approved`,
    route: json.route(request.route),
    text: tx.texts.pairingApproved,
  });
  return { kind: 'approved', ref, name, role, conversationKey };
}

/** A pairing request as it was shown to an approver. */
export type Showing = {
  readonly codeHash: string;
  /** Who may confirm the approval then, and where; the last one who was shown the request. */
  readonly offer?: { readonly to: string; readonly in: string };
};

/** Who asks with this code; counts as an attempt like an approval. Lets nobody in. */
export async function showRequest(
  tx: Tx,
  { codeHash, offer }: Showing,
): Promise<{ readonly kind: 'asks'; readonly ref: string; readonly name: string } | Unapproved> {
  if ((await takeAttempt(tx)) === 'limited') return { kind: 'limited' };
  const found = await findRequest(tx, codeHash);
  if (!found) return { kind: 'unknown' };
  const { account, id, ref, name } = found;
  if (offer) {
    await lockAccount(tx, account);
    await tx.db
      .updateTable('pairings')
      .set({ offeredTo: offer.to, offeredIn: offer.in })
      .where('id', '=', id)
      .where('codeHash', '=', codeHash)
      .execute();
  }
  return { kind: 'asks', ref, name };
}

async function findRequest(tx: Tx, codeHash: string) {
  const requests = await tx.db
    .selectFrom('pairings')
    .select(['account', 'peerId', 'id', 'ref', 'name', 'codeHash'])
    .where('expiresAt', '>', tx.now)
    .execute();
  // Every request is compared, so that the time tells nothing about which of them came near.
  const [match] = requests.filter((request) => isSame(request.codeHash ?? '', codeHash));
  return match;
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

type Person = {
  readonly account: string;
  readonly peerId: string;
  readonly ref: string;
  readonly name: string;
};

async function enterPerson(tx: Tx, person: Person, { role: wanted, by }: Approval): Promise<Role> {
  const role = wanted === 'owner-if-none' ? ((await hasOwner(tx)) ? 'user' : 'owner') : wanted;
  await tx.db
    .insertInto('people')
    .values({ ...person, role, approvedAt: tx.now, approvedBy: by })
    .onConflict((conflict) => conflict.columns(['account', 'peerId']).doUpdateSet({ role }))
    .execute();
  return role;
}

async function hasOwner(tx: Tx): Promise<boolean> {
  const row = await tx.db
    .selectFrom('people')
    .select('ref')
    .where('role', '=', 'owner')
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
