import { timingSafeEqual } from 'node:crypto';
import { plainText } from '#contracts/formatted-text.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { fillText } from '../../texts/chat-texts.ts';
import { readOwnerRoute } from '../alerts/owner-route.ts';
import { askQuestion, openApproval, readApproval } from '../approvals/approval.ts';
import type { CommandPlace, StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import type { KeptMessage } from '../base/json.ts';
import { insertNotice } from '../delivery/part.ts';
import { lockAccounts } from '../processes/accounts.ts';
import { blankNotice, hasApprovedOwner } from './admit.ts';
import { decideApproval, expireApproval, hasAttempt, lockDecision, takeAttempt } from './decide-approval.ts';
import { type Decider, lockCommand, personLabel, type Role } from './sender-roles.ts';

/** Name of a request: the hash of the code that the person was shown, or the person (`channel:peer`). */
export type RequestName = { readonly codeHash: string } | { readonly ref: string };

/** An approval of a pairing request. */
export type Approval = {
  readonly of: RequestName;
  readonly by: Decider;
  /**
   * In chat: the conversation in which the decider was first shown the person; without that nobody is approved. Absent
   * on the console, where the operator has read the list.
   */
  readonly offeredIn?: string;
};

export type ApprovalResult =
  | { readonly kind: 'approved'; readonly ref: string; readonly name: string; readonly role: Role }
  | ApprovalRefusal;

type ApprovalRefusal =
  | { readonly kind: 'unknown' }
  /** Too many codes within a minute: this one wasn't even checked. */
  | { readonly kind: 'limited' };

/**
 * Approves exactly the person who was shown the code, on the account that showed it, once: the row with the code is
 * deleted by the approval. Repeating it is an attempt with an unknown code.
 */
export async function approvePairing(
  tx: StepTx,
  approval: Approval,
  effects: Effects,
): Promise<ApprovalResult> {
  if ((await takeAttempt(tx)) === 'limited') return { kind: 'limited' };
  const { by, offeredIn } = approval;
  const request = await findRequest(tx, approval.of);
  const isOffered =
    offeredIn === undefined || (request?.offeredTo === by.ref && request.offeredIn === offeredIn);
  if (!request || !isOffered) return { kind: 'unknown' };
  const { id, account, peerId, ref, name } = request;
  const decided = await decideApproval(tx, { id, verdict: 'approve', by }, effects);
  if (decided.kind !== 'approved') return { kind: 'unknown' };
  const person = tx.db.selectFrom('people').select('role').where('account', '=', account);
  const { role } = await person.where('peerId', '=', peerId).executeTakeFirstOrThrow();
  return { kind: 'approved', ref, name, role };
}

/**
 * Acquires the locks of a command that approves a request, or only shows it if there is no `by`. Looks nothing up if no
 * attempt is left.
 */
export async function lockPairing(
  tx: StepTx,
  place: CommandPlace,
  { of, by }: Pick<Approval, 'of'> & Partial<Pick<Approval, 'by'>>,
): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  const request = (await hasAttempt(tx)) ? await findRequest(tx, of) : undefined;
  if (by) await lockDecision(tx, { id: request?.id ?? '', verdict: 'approve', by }, place);
  else await lockCommand(tx, place, { accounts: request ? [request.account] : [] });
}

/** A pairing request to show to an approver. */
export type ShownRequest = {
  readonly of: RequestName;
  /** Who may then confirm the approval, and where; only the last person who was shown the request can. */
  readonly offer?: { readonly to: string; readonly in: string };
};

/** Shows who made the request. It counts as an attempt, like an approval, but approves nobody. */
export async function showRequest(
  tx: Tx,
  { of, offer }: ShownRequest,
): Promise<{ readonly kind: 'asks'; readonly ref: string; readonly name: string } | ApprovalRefusal> {
  if ((await takeAttempt(tx)) === 'limited') return { kind: 'limited' };
  const found = await findRequest(tx, of);
  if (!found) return { kind: 'unknown' };
  const { account, id, ref, name } = found;
  if (offer) {
    await lockAccounts(tx, [account]);
    await tx.db
      .updateTable('pairings')
      .set({ offeredTo: offer.to, offeredIn: offer.in })
      .where('id', '=', id)
      .where('codeHash', 'is not', null)
      .execute();
  }
  return { kind: 'asks', ref, name };
}

async function findRequest(tx: Tx, of: RequestName) {
  const requests = await tx.db
    .selectFrom('pairings')
    .select(['account', 'peerId', 'id', 'ref', 'name', 'codeHash', 'offeredTo', 'offeredIn'])
    .where('expiresAt', '>', tx.now)
    .where('codeHash', 'is not', null)
    .orderBy('createdAt', 'desc')
    .execute();
  if ('ref' in of) return requests.find(({ ref }) => ref === of.ref);
  // Compares every request, so that timing doesn't reveal a near match.
  const [match] = requests.filter((request) => isSame(request.codeHash ?? '', of.codeHash));
  return match;
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** A stranger's request, made by their first message. */
export type PairingRequest = {
  /** Also the id of the question to the owner. */
  readonly id: string;
  /** `channel:peer`, which an operator uses to name the person. */
  readonly ref: string;
  /** Shown only to the operator. */
  readonly name: string;
  readonly route: ReplyRoute;
  readonly code: string;
  readonly codeHash: string;
  /** The command that approves the code on the machine where Parley runs. */
  readonly command: string;
  readonly validMs: number;
  /** How many requests of this bot account may be pending. */
  readonly maxPending: number;
  /** Owners that the configuration names, except this machine's user. */
  readonly owners: readonly string[];
  /** The message, if it can be answered later: not a command and not too long. */
  readonly kept?: KeptMessage;
  /** The stranger opened the chat, which gets a response every time. */
  readonly isStart: boolean;
};

export type PairingResult = {
  readonly kind:
    | 'new'
    /** The person has asked before, and the request hasn't expired. */
    | 'known'
    /** The maximum is pending. Those requests remain, so nobody can push out another's request. */
    | 'full';
  /** The message will be answered if the request is approved. */
  readonly isKept: boolean;
};

type PairingInput = {
  readonly account: string;
  readonly peerId: string;
  readonly noticeKey: string;
  readonly request: PairingRequest;
};

/**
 * Stores the request and asks an owner, if one can be reached. The caller must have locked the account's row, so that
 * requests of one account are handled one at a time. Safe to repeat: a person has one request.
 */
export async function requestPairing(
  tx: StepTx,
  requesting: PairingInput,
  effects: Effects,
): Promise<PairingResult> {
  const { account, peerId, request } = requesting;
  await forgetExpired(tx, account, effects);
  const requests = await tx.db
    .selectFrom('pairings')
    .select(['peerId', 'codeHash', 'kept'])
    .where('account', '=', account)
    .execute();
  const own = requests.find((row) => row.peerId === peerId);
  if (own) {
    const isPending = own.codeHash !== null;
    const kept = isPending && own.kept === null ? request.kept : undefined;
    if (kept) await keep(tx, requesting, kept);
    await sayAtStart(tx, requesting, {
      text: isPending ? tx.texts.pairingStillWaiting : tx.texts.pairingTurnedDown,
      effects,
    });
    return { kind: 'known', isKept: kept !== undefined };
  }
  if (requests.filter((row) => row.codeHash !== null).length >= request.maxPending) {
    await sayAtStart(tx, requesting, { text: tx.texts.pairingFull, effects });
    return { kind: 'full', isKept: false };
  }
  await open(tx, requesting, effects);
  return { kind: 'new', isKept: request.kept !== undefined };
}

async function open(tx: StepTx, requesting: PairingInput, effects: Effects): Promise<void> {
  const { account, peerId, noticeKey, request } = requesting;
  const { id, ref, name, code, codeHash, command, kept, route, validMs, owners } = request;
  await tx.db
    .insertInto('pairings')
    .values({
      ...{ account, peerId, id, ref, name, code, codeHash, noticeKey },
      kept: kept ? JSON.stringify(kept) : null,
      route: JSON.stringify(route),
      createdAt: tx.now,
      expiresAt: tx.now + validMs,
    })
    .execute();
  const minutes = Math.round(validMs / 60_000);
  const question = fillText(tx.texts.pairingQuestion, {
    ...{ account, code, minutes },
    who: personLabel({ ref, name }),
  });
  await openApproval(tx, { id, kind: 'pairing', subject: id, details: { question, account }, validMs });
  const hasOwner = owners.length > 0 || (await hasApprovedOwner(tx));
  const text = fillText(hasOwner ? tx.texts.pairingAsks : tx.texts.pairingFirst, {
    code,
    command,
    minutes,
  });
  effects.deliveries.push(await insertNotice(tx, { key: noticeKey, route, text }));
  const ownerRoute = await readOwnerRoute.run(tx, { owners });
  if (!ownerRoute) return;
  const choices = [
    { verdict: 'approve', label: tx.texts.approveLabel },
    { verdict: 'deny', label: tx.texts.denyLabel },
  ] as const;
  effects.deliveries.push(
    await askQuestion(tx, { id, route: ownerRoute, text: plainText(question), choices }),
  );
}

/** Keeps the first message that can be answered later; later ones aren't kept. */
async function keep(tx: StepTx, { account, peerId }: PairingInput, kept: KeptMessage): Promise<void> {
  await tx.db
    .updateTable('pairings')
    .set({ kept: JSON.stringify(kept) })
    .where('account', '=', account)
    .where('peerId', '=', peerId)
    .execute();
}

/** Responds whenever the chat is opened; a waiting stranger's other messages get no response. */
async function sayAtStart(
  tx: StepTx,
  { noticeKey: key, request }: PairingInput,
  { text, effects }: { readonly text: string; readonly effects: Effects },
): Promise<void> {
  if (!request.isStart) return;
  effects.deliveries.push(await insertNotice(tx, { key, route: request.route, text }));
}

async function forgetExpired(tx: StepTx, account: string, effects: Effects): Promise<void> {
  const expired = await tx.db
    .selectFrom('pairings')
    .select(['id', 'noticeKey'])
    .where('account', '=', account)
    .where('expiresAt', '<=', tx.now)
    .execute();
  for (const { id, noticeKey } of expired) {
    const approval = await readApproval(tx, id);
    if (approval?.state === 'open') await expireApproval(tx, approval, effects);
    await blankNotice(tx, noticeKey);
    await tx.db.deleteFrom('pairings').where('id', '=', id).execute();
  }
}
