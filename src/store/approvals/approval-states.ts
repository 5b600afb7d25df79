/** Writes the states of questions that a person decides; no other file does: `open`, then one end. */
import type { Selectable } from 'kysely';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenApproval } from '../base/index-predicates.ts';
import { insertNewRow } from '../base/insert-row.ts';
import { lockRows } from '../base/row-locks.ts';
import type { ApprovalsTable } from '../base/tables.ts';

/** Kinds of questions. A new kind needs its name here and its steps in `decide-approval.ts`. */
export type ApprovalKind = ApprovalsTable['kind'];

export type NewApproval = {
  readonly id: string;
  readonly kind: ApprovalKind;
  /** The matter to decide; one open question each. */
  readonly subject: string;
  /** The question, and what its kind needs to carry out the decision. Dropped with the decision. */
  readonly details: { readonly question: string; readonly [name: string]: string };
  readonly validMs: number;
};

/** A question as it is stored; `details` are empty once it is decided. */
export type Approval = Omit<Selectable<ApprovalsTable>, 'details'> & {
  readonly details: Readonly<Record<string, string | undefined>>;
};

/** Opens a question; returns false when one about the same subject is open. */
export async function openApproval(tx: Tx, { details, validMs, ...asked }: NewApproval): Promise<boolean> {
  return insertNewRow(tx, 'approvals', {
    ...asked,
    details: JSON.stringify(details),
    state: 'open',
    createdAt: tx.now,
    expiresAt: tx.now + validMs,
  });
}

/** The end of a question; `by`: who decided, as shown to others. */
export type ApprovalEnd = {
  readonly id: string;
  readonly state: 'approved' | 'denied' | 'expired';
  readonly by: string | null;
};

/**
 * Decides a question by compare and set, so that only one of several decisions finds it open. Approval and denial must
 * come before its expiry, and `expired` after it. Returns false when the question is already decided, or this decision
 * isn't possible at this time.
 */
export async function closeApproval(tx: Tx, { id, state, by }: ApprovalEnd): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('approvals')
    .set({ state, details: '{}', decidedBy: by })
    .where('id', '=', id)
    .where('state', '=', 'open')
    .where('expiresAt', state === 'expired' ? '<=' : '>', tx.now)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0;
}

/** Changes what an open question's kind has stored with it; undefined removes a detail. */
export async function addDetails(
  tx: Tx,
  { id, details }: Pick<Approval, 'id' | 'details'>,
  changes: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await tx.db
    .updateTable('approvals')
    .set({ details: JSON.stringify({ ...details, ...changes }) })
    .where('id', '=', id)
    .where('state', '=', 'open')
    .execute();
}

/** Locks the question's row. */
export async function lockApproval(tx: Tx, id: string): Promise<void> {
  await lockRows(tx, tx.db.selectFrom('approvals').select('id').where('id', '=', id));
}

/** Reads a question by its id; undefined when there is none. */
export async function readApproval(tx: Tx, id: string): Promise<Approval | undefined> {
  const row = await tx.db.selectFrom('approvals').selectAll().where('id', '=', id).executeTakeFirst();
  return row && approvalOf(row);
}

/** Reads the open question about a subject. */
export async function readOpenApproval(
  tx: Tx,
  { kind, subject }: Pick<NewApproval, 'kind' | 'subject'>,
): Promise<Approval | undefined> {
  const row = await tx.db
    .selectFrom('approvals')
    .selectAll()
    .where(isOpenApproval())
    .where('kind', '=', kind)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return row && approvalOf(row);
}

/** Reads open questions, newest first; `isDue`: those that are past their expiry. */
export const readOpenApprovals: StoreQuery<
  { readonly limit: number; readonly isDue: boolean },
  readonly Approval[]
> = {
  query: 'readOpenApprovals',
  usesClock: true,
  run: async (tx, { limit, isDue }) => {
    const rows = await tx.db
      .selectFrom('approvals')
      .selectAll()
      // A literal, as in the partial index.
      .where(isOpenApproval())
      .where('expiresAt', isDue ? '<=' : '>', tx.now)
      .orderBy('createdAt', 'desc')
      .limit(limit)
      .execute();
    return rows.map(approvalOf);
  },
};

function approvalOf(row: Selectable<ApprovalsTable>): Approval {
  // Only `openApproval` writes it.
  return { ...row, details: parseJson(row.details) as Approval['details'] };
}
