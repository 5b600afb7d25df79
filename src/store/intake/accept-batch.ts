import type { NotNull } from 'kysely';
import { type Acceptance, type KnownOutcome, reasonOf } from '#contracts/acceptance.ts';
import { ParleyError } from '#contracts/errors.ts';
import { messageId } from '#contracts/ids.ts';
import { askInGroup } from '../access/admit.ts';
import { decideApproval, lockDecision } from '../access/decide-approval.ts';
import { type PairingRequest, requestPairing } from '../access/pairing.ts';
import { assertRolesUnchanged } from '../access/sender-roles.ts';
import { noteCommand } from '../alerts/owner-route.ts';
import { readButton } from '../approvals/approval.ts';
import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { noEffects } from '../base/effects.ts';
import { conversationKeyOf, type LaneSpec } from '../base/keys.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { insertRow, locking, oneOf } from '../base/row-access.ts';
import { readWaitingLanes } from '../delivery/conversation.ts';
import { insertNotice, lockConversations } from '../delivery/part.ts';
import { type ClaimTerms, claimDue } from '../lanes/claim-due.ts';
import type { ClaimedRun } from '../lanes/claim-lane.ts';
import { proveLinks } from '../links/read-links.ts';
import { ensureLane } from '../rows/lane.ts';
import { acceptItem } from './accept-item.ts';
import {
  applyDelete,
  applyEdit,
  applyReaction,
  applyUnreadEdit,
  changeKept,
  changeMembership,
  migrateConversation,
} from './apply-change.ts';
import { isOtherEvent, moveAnchors } from './event.ts';
import { type AcceptEventInput, readLaneViews } from './lane-views.ts';
import type { AcceptInput, AcceptOutput, Decision, Notice, Proposal } from './proposal.ts';

export type AcceptAndClaim = AcceptInput & {
  /** Absent if the process has no free slot, or doesn't work lanes at all. */
  readonly claims?: ClaimTerms;
};

export type AcceptedAndClaimed = AcceptOutput & {
  /** Runs claimed for the holder, with their messages taken: it must execute them now. */
  readonly runs: readonly ClaimedRun[];
};

/**
 * Step 1, accept: one transaction writes a ledger row per event, whatever its outcome, the inbox row or the
 * command's effect, and the platform cursor and anchors. The platform may be acknowledged only after its commit.
 * Safe to repeat: an event key is stored once per account. Throws `stale_epoch` if another process receives for the
 * account, and `access_changed` if somebody was approved, revoked or linked since intake decided.
 */
export const acceptBatch: StoreCommand<AcceptAndClaim, AcceptedAndClaimed> = {
  name: 'acceptBatch',
  run: async (tx, given) => {
    const input = { ...given, proposals: await lockAhead(tx, given) };
    const others = [
      ...(await readWaitingLanes(tx, conversationsLeft(input))),
      ...(await readChangedLanes(tx, input.proposals)),
    ];
    const lanes = [...lanesEntered(input.proposals), ...others.map((key) => ({ key }))];
    const [, , known, views] = await Promise.all([
      moveCursorAt(tx, input),
      assertRolesUnchanged(tx, input),
      readKnownEvents(tx, input),
      readLaneViews(tx, lanes, conversationsOf(input)),
      // After the lanes, since a change of links locks lanes too.
      input.links && proveLinks(tx, input.links),
    ]);
    const isNew = ({ eventKey }: Proposal) => !known.has(eventKey);
    await views.makeMissing(tx, lanesEntered(input.proposals.filter(isNew)));
    await lockConversations(tx, conversationsTold(input));
    const effects = noEffects();
    const acceptances: Acceptance[] = [];
    for (const proposal of input.proposals) {
      acceptances.push(await acceptOnce(tx, { input, proposal, effects, views }, known));
      if (!leavesLanes.has(proposal.decision.kind)) views.forget();
    }
    await moveAnchors(tx, input.account, input.anchors ?? []);
    const isLate = views.hasReached || effects.deliveries.length > 0 || !input.proposals.every(isPlain);
    const runs = input.claims ? await claimDue(tx, input.claims, effects, isLate) : [];
    return { acceptances, effects, runs };
  },
};

/** Says whether the event locks a conversation only to send something there, or to mark it as reachable. */
function isPlain({ decision }: Proposal): boolean {
  return decision.kind === 'accept' || decision.kind === 'ignore';
}

/** Decisions that change no lane, or only a lane whose view they have taken. */
const leavesLanes: ReadonlySet<Proposal['decision']['kind']> = new Set([
  'accept',
  'ignore',
  'refuse',
  'pair',
]);

/** Returns the lanes that these events enter. */
function lanesEntered(proposals: readonly Proposal[]): readonly LaneSpec[] {
  return proposals.flatMap(({ decision }) => {
    if (decision.kind === 'accept') return [decision.item.lane];
    return decision.kind === 'command' ? [decision.lane] : [];
  });
}

/** Returns the conversations in which somebody has written. */
function conversationsOf({ proposals }: AcceptInput): readonly string[] {
  return proposals.flatMap(({ decision, conversationKey }) =>
    decision.kind === 'accept' || decision.kind === 'command' ? [conversationKey] : [],
  );
}

/**
 * Returns the conversations in which a refusal, or what couldn't be read, is explained. Their lanes stay unlocked, since locking them would block
 * other steps.
 */
function conversationsTold({ proposals }: AcceptInput): readonly string[] {
  return proposals.flatMap(({ decision }) =>
    'notice' in decision && decision.notice ? [conversationKeyOf(decision.notice.route)] : [],
  );
}

/** Sends the notice of a decision, if it has one. */
async function notify(
  tx: Tx,
  { input, proposal, effects }: AcceptEventInput,
  notice: Notice | undefined,
): Promise<void> {
  if (!notice) return;
  const { route, text, onceKey } = notice;
  const key = `${input.account}:${onceKey ?? proposal.eventKey}:refused`;
  effects.deliveries.push(await insertNotice(tx, { key, route, text }));
}

/** Returns the conversations that the bot has left: everything waiting there ends. */
function conversationsLeft({ proposals }: AcceptInput): readonly string[] {
  return proposals.flatMap(({ decision, conversationKey }) =>
    decision.kind === 'membership' && !decision.isMember ? [conversationKey] : [],
  );
}

/** Locks the account under the caller's lease. Its cursor moves immediately, and takes effect with the commit. */
async function moveCursorAt(tx: Tx, { account, epoch, holder, cursor }: AcceptInput): Promise<void> {
  const lease = { account, epoch, holder };
  const isHeld =
    cursor === undefined
      ? (await lockedAccount.first(tx, lease)) !== undefined
      : (await moveCursor.run(tx, { ...lease, cursor })) > 0;
  if (isHeld) return;
  throw new ParleyError('stale_epoch', `Another process now receives for account ${account}.`);
}

type Lease = { account: string; epoch: number; holder: string };

const moveCursor = prepared((db, of: QueryParams<Lease & { cursor: string }>) =>
  db
    .updateTable('accounts')
    .set({ cursor: of.cursor })
    .where('key', '=', of.account)
    .where('epoch', '=', of.epoch)
    .where('holder', '=', of.holder),
);

const lockedAccount = locking((db, of: QueryParams<Lease>) =>
  db
    .selectFrom('accounts')
    .select('key')
    .where('key', '=', of.account)
    .where('epoch', '=', of.epoch)
    .where('holder', '=', of.holder),
);

/** Recorded events, by event key. */
type KnownEvents = Map<string, { readonly fingerprint: string | null; readonly of: KnownOutcome }>;

async function acceptOnce(tx: StepTx, accepting: AcceptEventInput, known: KnownEvents): Promise<Acceptance> {
  const { input, proposal, effects } = accepting;
  const { eventKey, fingerprint = null } = proposal;
  const before = known.get(eventKey);
  if (isOtherEvent(before?.fingerprint, fingerprint)) effects.reusedKeys.push(eventKey);
  if (before) return { kind: 'duplicate', of: before.of };
  const acceptance = await applyDecision(tx, accepting);
  const reason = reasonOf(acceptance);
  known.set(eventKey, { fingerprint, of: { outcome: acceptance.kind, reason } });
  await insertRow(tx, 'ledger', {
    account: input.account,
    eventKey,
    kind: proposal.kind,
    outcome: acceptance.kind,
    reason: reason ?? null,
    inboxId: acceptance.kind === 'accepted' ? acceptance.inboxId : null,
    laneKey: acceptance.kind === 'accepted' ? acceptance.sessionKey : null,
    conversationKey: proposal.conversationKey,
    messageId: proposal.messageId ?? null,
    raw: proposal.raw ?? proposal.detail ?? null,
    fingerprint,
    at: tx.now,
  });
  return acceptance;
}

/** Reads the events that were recorded before. */
async function readKnownEvents(tx: Tx, { account, proposals }: AcceptInput): Promise<KnownEvents> {
  const eventKeys = JSON.stringify(proposals.map(({ eventKey }) => eventKey));
  const rows = await knownEvents.all(tx, { account, eventKeys });
  return new Map(
    rows.map(({ eventKey, fingerprint, outcome, reason }) => [
      eventKey,
      { fingerprint, of: { outcome, reason: reason ?? undefined } },
    ]),
  );
}

const knownEvents = prepared((db, of: QueryParams<{ account: string; eventKeys: string }>, dialect) =>
  db
    .selectFrom('ledger')
    .select(['eventKey', 'fingerprint', 'outcome', 'reason'])
    .where('account', '=', of.account)
    .where('eventKey', ...oneOf(of.eventKeys, dialect)),
);

async function applyDecision(tx: StepTx, accepting: AcceptEventInput): Promise<Acceptance> {
  const { proposal, effects, views } = accepting;
  const { decision } = proposal;
  if (decision.kind === 'command') await views.reach(tx, proposal.conversationKey);
  switch (decision.kind) {
    case 'accept': {
      const acceptance = await acceptItem(tx, accepting, decision.item);
      if (acceptance.kind === 'accepted') await notify(tx, accepting, decision.notice);
      return acceptance;
    }
    case 'ignore':
      return { kind: 'ignored', reason: decision.reason };
    case 'refuse': {
      if (decision.kept) await changeKept(tx, accepting, decision.kept);
      await notify(tx, accepting, decision.notice);
      return { kind: 'refused', reason: decision.reason };
    }
    case 'pair':
      return refuseUnpaired(tx, accepting, decision.request);
    case 'ask-group': {
      const asked = await askInGroup(tx, decision.request);
      if (asked !== undefined) effects.deliveries.push(asked);
      return { kind: 'refused', reason: 'group-not-allowed' };
    }
    case 'press':
      return applyPress(tx, accepting, decision);
    case 'command':
      return applyCommand(tx, accepting, decision);
    case 'edit':
      return applyEdit(tx, accepting, decision);
    case 'unread-edit': {
      const acceptance = await applyUnreadEdit(tx, accepting, decision);
      if (acceptance.kind === 'noted' && acceptance.effect !== 'context-replaced')
        await notify(tx, accepting, decision.notice);
      return acceptance;
    }
    case 'delete':
      return applyDelete(tx, accepting, decision);
    case 'reaction':
      return applyReaction(tx, accepting, decision);
    case 'migrate':
      return migrateConversation(tx, accepting, decision);
    case 'membership':
      return changeMembership(tx, accepting, decision);
    default:
      return decision satisfies never;
  }
}

async function refuseUnpaired(
  tx: StepTx,
  { input, proposal, effects }: AcceptEventInput,
  request: PairingRequest,
): Promise<Acceptance> {
  const requesting = {
    account: input.account,
    peerId: proposal.senderId,
    noticeKey: `${input.account}:${proposal.eventKey}:pairing`,
    request,
  };
  const { kind, isKept } = await requestPairing(tx, requesting, effects);
  const keepsFiles = isKept && (request.kept?.content.attachments.length ?? 0) > 0;
  const reason = kind === 'full' ? 'pairing-full' : 'dm-not-paired';
  return { kind: 'refused', reason, ...(keepsFiles && { keepsFiles }) };
}

type Press = Extract<Proposal['decision'], { kind: 'press' }>;

/** Applies a press as part of its acceptance. The channel shows the resulting text only to the person who pressed. */
async function applyPress(
  tx: StepTx,
  { proposal, effects }: AcceptEventInput,
  { data, by }: Press,
): Promise<Acceptance> {
  const button = readButton(data);
  if (!button) return { kind: 'pressed', result: 'unknown', text: tx.texts.approvalUnknown };
  const pressed = proposal.messageId === undefined ? {} : { pressed: messageId(proposal.messageId) };
  const { kind: result, text } = await decideApproval(tx, { ...button, by, ...pressed }, effects);
  return { kind: 'pressed', result, text };
}

/**
 * Acquires the locks of commands and presses that must come before the batch's own account, or between its lanes and
 * its conversations. Returns the events, with the input that the commands' own lock steps returned.
 */
async function lockAhead(tx: StepTx, { account, proposals }: AcceptInput): Promise<readonly Proposal[]> {
  const locked: Proposal[] = [];
  for (const proposal of proposals) {
    const { decision, conversationKey } = proposal;
    if (decision.kind === 'press') {
      const button = readButton(decision.data);
      if (button) await lockDecision(tx, { ...button, by: decision.by }, { account });
    }
    const lock = decision.kind === 'command' ? tx.chatCommands.get(decision.command)?.lock : undefined;
    if (decision.kind !== 'command' || !lock) {
      locked.push(proposal);
      continue;
    }
    const input = await lock(tx, { account, conversationKey, lane: decision.lane }, decision.input);
    locked.push({ ...proposal, decision: { ...decision, input } });
  }
  return locked;
}

const changes: ReadonlySet<Proposal['decision']['kind']> = new Set([
  'edit',
  'unread-edit',
  'delete',
  'reaction',
]);

/**
 * Reads the keys of the lanes whose messages these events change, so that a batch locks them in order with its other
 * lanes. A single writer, as in SQLite, has no order to keep.
 */
async function readChangedLanes(tx: Tx, proposals: readonly Proposal[]): Promise<readonly string[]> {
  const changing = proposals.filter(({ decision }) => changes.has(decision.kind));
  const messages = [...new Set(changing.flatMap(({ messageId }) => messageId ?? []))];
  if (tx.dialect !== 'postgres' || messages.length === 0) return [];
  const conversations = [...new Set(changing.map(({ conversationKey }) => conversationKey))];
  const remembered = tx.db
    .selectFrom('groupContext')
    .select('laneKey')
    .where('conversationKey', 'in', conversations)
    .where('messageId', 'in', messages);
  const ours = tx.db
    .selectFrom('receipts')
    .innerJoin('outbox', 'outbox.key', 'receipts.partKey')
    .select('outbox.laneKey')
    .where('receipts.conversationKey', 'in', conversations)
    .where('receipts.messageId', 'in', messages)
    .where('outbox.laneKey', 'is not', null)
    .$narrowType<{ laneKey: NotNull }>();
  const rows = await tx.db
    .selectFrom('inbox')
    .select('laneKey')
    .where('conversationKey', 'in', conversations)
    .where('messageId', 'in', messages)
    .union(remembered)
    .union(ours)
    .execute();
  return rows.map(({ laneKey }) => laneKey);
}

type CommandDecision = Extract<Decision, { kind: 'command' }>;

/** Runs a command that takes effect immediately: its effect, answer and ledger row are one transaction. */
async function applyCommand(
  tx: StepTx,
  { proposal, input: { account }, effects }: AcceptEventInput,
  { command, input, asked, lane: spec, route }: CommandDecision,
): Promise<Acceptance> {
  const step = tx.chatCommands.get(command);
  if (!step) throw new ParleyError('internal', `There is no chat command named ${command}.`);
  const ensured = await ensureLane(tx, spec);
  const partKey = (name: string) => `${account}:${proposal.eventKey}:${name}`;
  const { senderId, conversationKey } = proposal;
  const laneKey = spec.key;
  const place = { account, senderId, conversationKey, route, laneKey };
  const scene = { ...place, lane: async () => ensured, partKey, effects };
  const { text, isRefused } = await step.run(tx, scene, input);
  if (text !== undefined)
    effects.deliveries.push(await insertNotice(tx, { key: partKey('answer'), route, text, asked, laneKey }));
  if (spec.chatKind === 'dm') await noteCommand(tx, { key: conversationKey, by: senderId });
  return isRefused ? { kind: 'refused', reason: 'not-permitted' } : { kind: 'command', command };
}
