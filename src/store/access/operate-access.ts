import type { StoreCommand, StoreQuery } from '../base/command.ts';
import { noEffects } from '../base/effects.ts';
import { type Approval, type ApprovalResult, approvePairing } from './pairing.ts';
import { type Revocation, type RevokeResult, revokeAccess } from './revoke-access.ts';
import type { Role } from './sender-roles.ts';

/** Approves a request on the console; a running gateway delivers the notice in its next sweep. */
export const approveOnConsole: StoreCommand<Approval, ApprovalResult> = {
  name: 'approveOnConsole',
  run: (tx, approval) => approvePairing(tx, approval, noEffects()),
};

/** Revokes access on the console; a running gateway stops the affected runs when it next renews its leases. */
export const revokeOnConsole: StoreCommand<Revocation, RevokeResult> = {
  name: 'revokeOnConsole',
  run: revokeAccess,
};

/** Everyone who asks for access or was approved. */
export type AccessList = {
  readonly requests: readonly PendingRequest[];
  readonly people: readonly ApprovedPerson[];
};

/** A pairing request that is still undecided. */
export type PendingRequest = {
  readonly ref: string;
  /** The person's chosen name, which proves nothing. */
  readonly name: string;
  /** The code as shown to the person. */
  readonly code: string;
  /** The bot account that the person wrote to. */
  readonly account: string;
  readonly createdAt: number;
  readonly expiresAt: number;
};

/** A person who has access by pairing. */
export type ApprovedPerson = {
  readonly ref: string;
  readonly name: string;
  readonly account: string;
  readonly role: Role;
  readonly approvedAt: number;
  readonly approvedBy: string;
};

/** Reads pending requests and approved people, the newest first. */
export const readAccess: StoreQuery<{ readonly limit: number }, AccessList> = {
  query: 'readAccess',
  run: async (tx, { limit }) => {
    const requests = await tx.db
      .selectFrom('pairings')
      .select(['ref', 'name', 'code', 'account', 'createdAt', 'expiresAt'])
      .where('codeHash', 'is not', null)
      .where('expiresAt', '>', tx.now)
      .orderBy('createdAt', 'desc')
      .limit(limit)
      .execute();
    const people = await tx.db
      .selectFrom('people')
      .select(['ref', 'name', 'account', 'role', 'approvedAt', 'approvedBy'])
      .orderBy('approvedAt', 'desc')
      .limit(limit)
      .execute();
    return { requests: requests.map(({ code, ...row }) => ({ ...row, code: code ?? '' })), people };
  },
};
