import type { ReplyRoute } from '#contracts/route.ts';
import type { StepTx } from '../base/command.ts';
import { insertNotice } from '../delivery/insert-notice.ts';

/** A stranger's request, made by their first message. */
export type PairingRequest = {
  readonly id: string;
  /** `channel:peer`, as an operator names the person. */
  readonly ref: string;
  /** For the operator's eyes only. */
  readonly name: string;
  readonly route: ReplyRoute;
  readonly codeHash: string;
  /** Shows the code to the person. */
  readonly text: string;
  readonly validMs: number;
  /** Requests of this bot account. */
  readonly maxPending: number;
};

export type Requested =
  /** `conversationKey`: where the notice waits to be delivered. */
  | { readonly kind: 'new'; readonly conversationKey: string }
  /** Asked already, within the life of the code: nothing is said a second time. */
  | { readonly kind: 'known' }
  /** As many as allowed wait. Those stay: nobody can push out another's request. */
  | { readonly kind: 'full' };

type Requesting = {
  readonly account: string;
  readonly peerId: string;
  readonly noticeKey: string;
  readonly request: PairingRequest;
};

/** The caller holds the account's row, so that requests of one account come one after the other. */
export async function requestPairing(tx: StepTx, requesting: Requesting): Promise<Requested> {
  const { account, peerId, noticeKey, request } = requesting;
  await forgetExpired(tx, account);
  const requests = await tx.db
    .selectFrom('pairings')
    .select(['peerId', 'codeHash'])
    .where('account', '=', account)
    .execute();
  if (requests.some((row) => row.peerId === peerId)) return { kind: 'known' };
  if (requests.filter((row) => row.codeHash !== null).length >= request.maxPending) return { kind: 'full' };
  const { id, ref, name, codeHash, route, text, validMs } = request;
  await tx.db
    .insertInto('pairings')
    .values({
      account,
      peerId,
      id,
      ref,
      name,
      codeHash,
      route: JSON.stringify(route),
      noticeKey,
      createdAt: tx.now,
      expiresAt: tx.now + validMs,
    })
    .execute();
  const conversationKey = await insertNotice(tx, { key: noticeKey, route, text });
  return { kind: 'new', conversationKey };
}

async function forgetExpired(tx: StepTx, account: string): Promise<void> {
  const expired = await tx.db
    .deleteFrom('pairings')
    .where('account', '=', account)
    .where('expiresAt', '<=', tx.now)
    .returning('noticeKey')
    .execute();
  for (const { noticeKey } of expired) await blankNotice(tx, noticeKey);
}

/** The code is worth nothing any more and leaves the outbox too, unless it is just being sent. */
export async function blankNotice(tx: StepTx, noticeKey: string): Promise<void> {
  const content = JSON.stringify({ kind: 'text', text: { text: tx.texts.pairingCodeGone, spans: [] } });
  await tx.db
    .updateTable('outbox')
    .set({ content })
    .where('key', '=', noticeKey)
    .where('state', '<>', 'sending')
    .execute();
}
