/** Writes the states of questions that a person decides; no other file does: `open`, then one end. */
import type { Selectable } from 'kysely';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { MessageId } from '#contracts/ids.ts';
import type { Button } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenApproval } from '../base/index-predicates.ts';
import { insertNewRow, lockRows } from '../base/row-access.ts';
import type { ApprovalsTable } from '../base/tables.ts';
import { changePart, insertPart } from '../delivery/part.ts';

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

// Asks a question in a conversation, and shows there who decided it.

/** An answer to a question; `always` approves a call, and the same call from now on. */
export type Verdict = keyof typeof verdictCodes;

/** Each verdict in the id of its button, which may be pressed long after. */
const verdictCodes = { approve: 'y', always: 's', deny: 'n' } as const;

type Question = {
  readonly id: string;
  readonly route: ReplyRoute;
  readonly text: FormattedText;
  /** The answers to offer, with their labels. */
  readonly choices: readonly { readonly verdict: Verdict; readonly label: string }[];
  /** Shows the question in a session's timeline. The caller has locked the lane. */
  readonly timeline?: { readonly laneKey: string; readonly seq: number };
};

/** The verdict whose command, with a further word, also gives the verdict `always`. */
const baseVerdict: Verdict = 'approve';

/** Stores the question's message; returns its conversation's key. Safe to repeat: a question has one message. */
export async function askQuestion(tx: Tx, question: Question): Promise<string> {
  const { id, route, text, choices, timeline } = question;
  const buttons = choices.map(
    ({ verdict, label }): Button => ({
      id: buttonId(id, verdict),
      label,
      command: verdict === 'always' ? `/${baseVerdict} ${id} always` : `/${verdict} ${id}`,
    }),
  );
  const content = { kind: 'text', text, buttons } as const;
  return insertPart(tx, {
    key: partKeyOf(id),
    route,
    content,
    purpose: 'notice',
    ...(timeline && { timeline }),
  });
}

/**
 * Replaces the question with its result, wherever it was asked; returns the conversation to deliver in. `pressed`: the
 * platform id of the message whose button decided.
 */
export function tellResult(
  tx: Tx,
  {
    id,
    text,
    pressed,
  }: { readonly id: string; readonly text: FormattedText; readonly pressed?: MessageId | undefined },
): Promise<string | undefined> {
  return changePart(tx, { key: partKeyOf(id), text, messageId: pressed });
}

/** Returns the id of the button that gives this answer to the question. */
function buttonId(id: string, verdict: Verdict): string {
  return `a:${id}:${verdictCodes[verdict]}`;
}

/** Returns the question and answer that a button id encodes; undefined for any other id. */
export function readButton(data: string): { readonly id: string; readonly verdict: Verdict } | undefined {
  const [, id, code] = /^a:([a-z0-9]{1,32}):([ysn])$/.exec(data) ?? [];
  const verdict = verdicts.find((each) => verdictCodes[each] === code);
  return id === undefined || verdict === undefined ? undefined : { id, verdict };
}

const verdicts = Object.keys(verdictCodes) as readonly Verdict[];

function partKeyOf(id: string): string {
  return `approval:${id}`;
}
