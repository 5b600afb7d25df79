/**
 * Decides a question, in the transaction of whatever brought the answer: a press, a command, the chat page or the
 * console. Only the decider's rights matter, not where the answer comes from. One answer counts; the others learn how
 * the question ended.
 */
import type { PressResult } from '#contracts/acceptance.ts';
import { ParleyError } from '#contracts/errors.ts';
import { plainText } from '#contracts/formatted-text.ts';
import type { MessageId } from '#contracts/ids.ts';
import { type ChatTexts, fillText } from '../../texts/chat-texts.ts';
import {
  type Approval,
  type ApprovalEnd,
  type ApprovalKind,
  closeApproval,
  lockApproval,
  readApproval,
  tellResult,
  type Verdict,
} from '../approvals/approval.ts';
import type { CommandPlace, StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import type { LaneRef } from '../base/keys.ts';
import { ensureRow, findRow, lockRows } from '../base/row-access.ts';
import { lockAccounts } from '../processes/accounts.ts';
import { lockOrMakeLanes } from '../rows/lane.ts';
import { admitGroup, admitRequest, dropGroup, dropRequest, laneOfKept, laneOfMention } from './admit.ts';
import { decideCall, expireCall } from './decide-call.ts';
import type { Decider, OpenDecision } from './sender-roles.ts';

export type Decision = {
  readonly id: string;
  readonly verdict: Verdict;
  readonly by: Decider;
  /** The message whose button was pressed. */
  readonly pressed?: MessageId;
};

/** The result of an answer, with its text for the chat. */
export type DecisionResult = { readonly kind: PressResult; readonly text: string };

/** Steps for the answers to one kind of question. */
type KindSteps = {
  /** Returns the lane that an approval puts an item into, read under the lock of the question's account. */
  laneOf?(tx: Tx, approval: Approval): Promise<LaneRef | undefined>;
  /** Applies the approval. Returns the text that replaces the question. */
  approve(tx: StepTx, deciding: OpenDecision): Promise<string>;
  /** Ends a refused or expired question. Returns the text that replaces it. */
  drop(tx: StepTx, approval: Approval, end: Pick<ApprovalEnd, 'state' | 'by'>): Promise<string>;
};

const steps: Readonly<Record<ApprovalKind, KindSteps>> = {
  pairing: { laneOf: laneOfKept, approve: admitRequest, drop: dropRequest },
  group: { laneOf: laneOfMention, approve: admitGroup, drop: dropGroup },
};

/** The account and lane of a command, or the account of a press. */
type DecisionPlace = Pick<CommandPlace, 'account'> & Partial<Pick<CommandPlace, 'lane'>>;

/**
 * Acquires all locks of a decision except those of conversations: the row shared by all approvals if the decision may
 * make the first owner, the question's account, the lane that gets an item, and the question. `place` is where the
 * decision was made.
 */
export async function lockDecision(
  tx: StepTx,
  { id, verdict, by }: Omit<Decision, 'pressed'>,
  place?: DecisionPlace,
): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  const approval = by.isOwner ? await readApproval(tx, id) : undefined;
  const call = approval ? undefined : await findRow(tx, 'callApprovals', id, ['laneKey']);
  const isApproved = verdict !== 'deny';
  // The first owner is determined across all accounts.
  if (approval && isApproved && by.role === 'owner-if-none') await lockAttempts(tx);
  const accounts = [place?.account, approval?.details.account].filter((key) => key !== undefined);
  await lockAccounts(tx, [...new Set(accounts)]);
  const entered = approval && isApproved ? await steps[approval.kind].laneOf?.(tx, approval) : undefined;
  const called = call && { key: call.laneKey };
  const lanes = [place?.lane, entered, called].filter((ref) => ref !== undefined);
  if (lanes.length > 0) await lockOrMakeLanes(tx, lanes);
  if (approval) await lockApproval(tx, id);
}

/** Decides the question. Safe to repeat: it is decided once, by compare and set on its row. */
export async function decideApproval(
  tx: StepTx,
  decision: Decision,
  effects: Effects,
): Promise<DecisionResult> {
  const { id, verdict, by, pressed } = decision;
  await lockDecision(tx, decision);
  const approval = await readApproval(tx, id);
  if (!approval) return decideCall(tx, decision, effects);
  if (!by.isOwner) return told(tx, approval, 'foreign');
  const kind = steps[approval.kind];
  const isApproval = verdict !== 'deny';
  const end = { id, state: isApproval ? 'approved' : 'denied', by: by.label } as const;
  if (!(await closeApproval(tx, end))) return told(tx, (await readApproval(tx, id)) ?? approval, 'late');
  const text = isApproval
    ? await kind.approve(tx, { approval, by, effects })
    : await kind.drop(tx, approval, end);
  const shownIn = await tellResult(tx, { id, text: plainText(text), pressed });
  if (shownIn !== undefined) effects.deliveries.push(shownIn);
  return { kind: end.state, text };
}

/** Returns the response to an answer that doesn't count. */
function told({ texts, now }: StepTx, approval: Approval, kind: 'foreign' | 'late'): DecisionResult {
  if (approval.state !== 'open') return { kind, text: describeEnd(texts, approval) };
  const isOver = approval.expiresAt <= now;
  return { kind, text: isOver ? texts.approvalExpired : texts.approvalForeign };
}

function describeEnd(texts: ChatTexts, { state, decidedBy }: Approval): string {
  switch (state) {
    case 'approved':
      return fillText(texts.approvalWasApproved, { by: decidedBy });
    case 'denied':
      return fillText(texts.approvalWasDenied, { by: decidedBy });
    case 'open':
    case 'expired':
      return texts.approvalExpired;
    default:
      return state satisfies never;
  }
}

/** Decides a question with an answer from the chat page. */
export const decideOnPage: StoreCommand<
  Omit<Decision, 'pressed'>,
  { readonly decided: DecisionResult; readonly effects: Effects }
> = {
  name: 'decideOnPage',
  run: async (tx, decision) => {
    const effects = noEffects();
    return { decided: await decideApproval(tx, decision, effects), effects };
  },
};

/**
 * Ends an expired question, and drops what was kept for it. Only one per step: it acquires the same locks as an answer,
 * in the same order, and with two questions it would hold the first one's rows while waiting for the second's. Safe to
 * repeat.
 */
export const expireQuestion: StoreCommand<{ readonly id: string }, Effects> = {
  name: 'expireQuestion',
  run: async (tx, { id }) => {
    const effects = noEffects();
    const approval = await readApproval(tx, id);
    if (approval) await expireApproval(tx, approval, effects);
    else await expireCall(tx, id, effects);
    return effects;
  },
};

/** Ends an expired question, in the same step that drops its request. */
export async function expireApproval(tx: StepTx, approval: Approval, effects: Effects): Promise<void> {
  const { id, details } = approval;
  if (details.account !== undefined) await lockAccounts(tx, [details.account]);
  const end = { id, state: 'expired', by: null } as const;
  if (!(await closeApproval(tx, end))) return;
  const shownIn = await tellResult(tx, {
    id,
    text: plainText(await steps[approval.kind].drop(tx, approval, end)),
  });
  if (shownIn !== undefined) effects.deliveries.push(shownIn);
}

/** How many codes are checked within any 60 s, across all people and processes. */
export const attemptsPerMinute = 10;
const windowMs = 60_000;
/** All approvals share one row. */
const name = 'approve';

/**
 * Takes one attempt, or reports that none is left; then even a correct code isn't checked. The times of the last
 * attempts are stored in a row, so a restart doesn't reset them, and its lock admits one attempt at a time.
 */
export async function takeAttempt(tx: Tx): Promise<'taken' | 'limited'> {
  const recent = recentOf(tx, await lockAttempts(tx));
  if (recent.length >= attemptsPerMinute) return 'limited';
  await tx.db
    .updateTable('pairingTries')
    .set({ recent: JSON.stringify([...recent, tx.now]) })
    .where('name', '=', name)
    .execute();
  return 'taken';
}

/** Locks the row shared by all approvals, and says whether an attempt is left. */
export async function hasAttempt(tx: Tx): Promise<boolean> {
  return recentOf(tx, await lockAttempts(tx)).length < attemptsPerMinute;
}

function recentOf(tx: Tx, { recent }: { readonly recent: string }): readonly number[] {
  // A clock that was set back leaves times in the future, which count until it has caught up.
  return (JSON.parse(recent) as readonly number[]).filter((at) => at > tx.now - windowMs);
}

/**
 * Locks the row shared by all approvals, so that they run one at a time, whatever accounts they are for. It must be
 * locked before the accounts.
 */
async function lockAttempts(tx: Tx): Promise<{ readonly recent: string }> {
  const tries = tx.db.selectFrom('pairingTries').select('recent').where('name', '=', name);
  const [known] = await lockRows(tx, tries);
  if (known) return known;
  // The very first attempt; another process may create the row meanwhile.
  await ensureRow(tx, 'pairingTries', { name, recent: '[]' });
  const [made] = await lockRows(tx, tries);
  if (!made) throw new ParleyError('internal', 'The row shared by all approvals could not be created.');
  return made;
}
