/**
 * Edits, deletes and reactions are input. A waiting message is replaced or cancelled, even after the cap reduced it to
 * a line. If the active run has taken the message, an edit becomes a steer and a deletion offers a stop. After the run
 * the change is noted in its transcript and starts nothing. Only a message's own sender can edit it.
 */

import type { Acceptance } from '#contracts/acceptance.ts';
import { type AttachmentRef, fileKeyOf, isSameFiles } from '#contracts/attachment.ts';
import { changeKeptMention } from '../access/admit.ts';
import type { StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { type InboxContent, type IncomingFile, json, type KeptMessage } from '../base/json.ts';
import { oneLine, summaryLineOf } from '../base/one-line.ts';
import { changeRow, readRow } from '../base/row-access.ts';
import { markReachable, markUnreachable, moveConversation, movedTo } from '../delivery/conversation.ts';
import { ensureConversation, insertNotice } from '../delivery/part.ts';
import {
  canBeCorrected,
  changeSummary,
  correct,
  isInActiveRun,
  type LockedItem,
  withdrawCorrections,
} from '../items/corrections.ts';
import { fetchWaitMs } from '../items/enqueue-item.ts';
import { reviveSummary } from '../items/overflow.ts';
import { leaveContextFiles, rememberContext } from '../rows/group-context.ts';
import { endItems, endSummarized } from '../rows/item.ts';
import { lockLane } from '../rows/lane.ts';
import { leaveFiles } from '../rows/left-files.ts';
import { appendNote } from '../rows/transcript.ts';
import type { AcceptEventInput } from './lane-views.ts';
import type { Decision, EditDecision, KeptChange, UnreadEditDecision } from './proposal.ts';

type DeleteDecision = Extract<Decision, { kind: 'delete' }>;
type ReactionDecision = Extract<Decision, { kind: 'reaction' }>;

export async function applyEdit(
  tx: StepTx,
  accepting: AcceptEventInput,
  edit: EditDecision,
): Promise<Acceptance> {
  const { text, newId } = edit;
  const found = await findMessage(tx, accepting);
  if (!found) return editContext(tx, accepting, (content) => withNewText(content, edit).changed);
  const { row } = found;
  if (row.senderId !== accepting.proposal.senderId) return { kind: 'ignored', reason: 'not-the-author' };
  const content = json.content(row.content);
  const { words, changed, files } = withNewText(content, edit);
  if (content.text === text && files === undefined) return { kind: 'ignored', reason: 'unchanged' };
  // A lane command's text can't be edited.
  if (row.kind === 'command') return { kind: 'noted', effect: 'command-kept' };
  await changeRow(tx, 'inbox', row.id, { content: JSON.stringify(changed) });
  const { effects } = accepting;
  effects.changes.push(row.laneKey);
  if (row.state === 'held' || row.state === 'waiting') {
    if (files !== undefined)
      await fetchAnew(tx, found, { isFetching: changed.attachments.length > 0, effects });
    return { kind: 'noted', effect: 'replaced' };
  }
  if (await canBeCorrected(tx, found)) {
    await correct(tx, { found, text, prompt: words, newId, effects, ...(files && { files }) });
    return { kind: 'noted', effect: 'steered' };
  }
  if (await changeSummary(tx, found, summaryLineOf(changed))) return { kind: 'noted', effect: 'replaced' };
  if (row.transcriptId === null) return { kind: 'noted', effect: 'ended' };
  await noteAfterRun(tx, row.transcriptId, edit.note);
  return { kind: 'noted', effect: 'after-run' };
}

/** Fetches the files of a waiting message's new version; a held one's are fetched once it is opened. */
async function fetchAnew(
  tx: Tx,
  { row }: LockedItem,
  { isFetching, effects }: { readonly isFetching: boolean; readonly effects: Effects },
): Promise<void> {
  const dueAt = isFetching && row.state === 'waiting' ? tx.now + fetchWaitMs : row.dueAt;
  await changeRow(tx, 'inbox', row.id, { isFetching: isFetching ? 1 : 0, dueAt });
  if (isFetching && row.state === 'waiting') effects.fetches.push(row.id);
}

/**
 * Returns the new words, the new files if they differ from the earlier ones, and the content with both. Another
 * person's words remain data after any edit; the sender's own become data once an edit makes them another's.
 */
function withNewText(content: InboxContent, edit: EditDecision) {
  const { text, provenance = content.provenance } = edit;
  const words = content.provenance === undefined ? edit.prompt : (edit.dataPrompt ?? edit.prompt);
  const { tail: _, unknownFields: __, ...rest } = content;
  const own = content.attachments.filter(({ of }) => of === undefined);
  const files = edit.attachments && !isSameFiles(edit.attachments, own) ? edit.attachments : undefined;
  const prompt = [content.lead ?? '', words].filter((piece) => piece !== '').join('\n');
  const changed: InboxContent = {
    ...(files ? withNewFiles(rest, files) : rest),
    ...{ text, prompt },
    ...(edit.tail !== undefined && { tail: edit.tail }),
    ...(provenance && { provenance }),
  };
  return { words, changed, files };
}

/** The files of a quoted message stay. All are fetched again, since the earlier ones may have been given up. */
function withNewFiles(
  { stored: _, ...content }: InboxContent,
  files: readonly AttachmentRef[],
): InboxContent {
  const others = content.attachments.filter(({ of }) => of !== undefined);
  return { ...content, attachments: [...files, ...others] };
}

/**
 * Keeps the earlier version of a message whose edit can't be read, and remarks on the edit wherever that version is
 * still to be read. An active run that has read the message is told, and a finished one's transcript has a note.
 */
export async function applyUnreadEdit(
  tx: StepTx,
  accepting: AcceptEventInput,
  edit: UnreadEditDecision,
): Promise<Acceptance> {
  const found = await findMessage(tx, accepting);
  const remarked = (content: InboxContent) => withRemark(content, edit.remark);
  if (!found) return editContext(tx, accepting, remarked);
  const { row } = found;
  if (row.senderId !== accepting.proposal.senderId) return { kind: 'ignored', reason: 'not-the-author' };
  if (row.kind === 'command') return { kind: 'noted', effect: 'command-kept' };
  const content = json.content(row.content);
  const changed = remarked(content);
  if (row.state === 'held' || row.state === 'waiting') {
    await changeRow(tx, 'inbox', row.id, { content: JSON.stringify(changed) });
    return { kind: 'noted', effect: 'remarked' };
  }
  if (await canBeCorrected(tx, found)) {
    const { newId, note: prompt } = edit;
    await correct(tx, { found, text: content.text, prompt, newId, effects: accepting.effects });
    return { kind: 'noted', effect: 'steered' };
  }
  if (await changeSummary(tx, found, summaryLineOf(changed))) return { kind: 'noted', effect: 'remarked' };
  if (row.transcriptId === null) return { kind: 'noted', effect: 'ended' };
  await noteAfterRun(tx, row.transcriptId, edit.note);
  return { kind: 'noted', effect: 'after-run' };
}

/** Adds a remark after the message once, however often it is edited. */
function withRemark(content: InboxContent, remark: string): InboxContent {
  if (content.prompt.endsWith(remark)) return content;
  const after = (text: string) => [text, remark].filter((piece) => piece !== '').join('\n');
  return { ...content, prompt: after(content.prompt), tail: after(content.tail ?? '') };
}

export async function applyDelete(
  tx: StepTx,
  accepting: AcceptEventInput,
  deletion: DeleteDecision,
): Promise<Acceptance> {
  const found = await findMessage(tx, accepting);
  if (!found) return deleteContext(tx, accepting, deletion);
  const { row, lane } = found;
  if (!deletion.isVouched && row.senderId !== accepting.proposal.senderId)
    return { kind: 'ignored', reason: 'not-the-author' };
  const end = { outcome: 'cancelled', outcomeReason: 'deleted' } as const;
  const { effects } = accepting;
  effects.changes.push(lane.key);
  if ((await endItems(tx, [row.id], end)) > 0) {
    await reviveSummary(tx, lane.key, effects);
    return { kind: 'noted', effect: 'cancelled' };
  }
  if (await changeSummary(tx, found, undefined)) {
    await endSummarized(tx, [row.id], end);
    return { kind: 'noted', effect: 'cancelled' };
  }
  await withdrawCorrections(tx, found, 'deleted');
  await reviveSummary(tx, lane.key, effects);
  if (isInActiveRun(found)) {
    const { proposal, input } = accepting;
    const key = `${input.account}:${proposal.eventKey}:offer`;
    const notice = { key, route: deletion.route, text: tx.texts.stopOffer, laneKey: lane.key };
    effects.deliveries.push(await insertNotice(tx, notice));
    return { kind: 'noted', effect: 'stop-offered' };
  }
  if (row.transcriptId !== null) {
    const about = `an earlier message: “${oneLine(json.content(row.content).prompt)}”`;
    await noteAfterRun(
      tx,
      row.transcriptId,
      deletion.note.replaceAll('{message}', () => about),
    );
  }
  return { kind: 'noted', effect: 'after-run' };
}

/** Appends a note to the transcript that contains the message, even an earlier session's. */
async function noteAfterRun(tx: Tx, transcriptId: string, text: string): Promise<void> {
  const { sessionId } = await readRow(tx, 'transcript', transcriptId, ['sessionId']);
  await appendNote(tx, { sessionId, text });
}

/** Remembers a reaction, which the agent sees in its next turn and which starts nothing. */
export async function applyReaction(
  tx: Tx,
  accepting: AcceptEventInput,
  { content, limit }: ReactionDecision,
): Promise<Acceptance> {
  const { conversationKey, messageId } = accepting.proposal;
  const target = await findReacted(tx, accepting);
  if (!target) return { kind: 'ignored', reason: 'unknown-message' };
  await lockLane(tx, target.laneKey);
  await rememberContext(tx, {
    laneKey: target.laneKey,
    conversationKey,
    messageId,
    content: { ...content, prompt: content.prompt.replaceAll('{message}', () => target.message) },
    limit,
  });
  return { kind: 'noted', effect: 'reaction' };
}

type ReactionPlace = { readonly laneKey: string; readonly message: string };

/** Finds the message reacted to: a person's or one of the agent's own. */
async function findReacted(tx: Tx, accepting: AcceptEventInput): Promise<ReactionPlace | undefined> {
  const found = await findMessage(tx, accepting);
  if (found) {
    const { prompt } = json.content(found.row.content);
    return {
      laneKey: found.lane.key,
      message: prompt === '' ? 'a message' : `the message “${oneLine(prompt)}”`,
    };
  }
  const { proposal } = accepting;
  const part = await tx.db
    .selectFrom('receipts')
    .innerJoin('outbox', 'outbox.key', 'receipts.partKey')
    .select(['outbox.laneKey', 'outbox.content'])
    .where('receipts.conversationKey', '=', proposal.conversationKey)
    .where('receipts.messageId', '=', proposal.messageId ?? '')
    .executeTakeFirst();
  if (!part || part.laneKey === null) return undefined;
  const content = json.outbound(part.content);
  const isText = content.kind === 'text' || content.kind === 'edit';
  return {
    laneKey: part.laneKey,
    message: isText ? `your message “${oneLine(content.text.text)}”` : 'a message of yours',
  };
}

async function findMessage(tx: Tx, { proposal }: AcceptEventInput): Promise<LockedItem | undefined> {
  const find = () =>
    tx.db
      .selectFrom('inbox')
      .selectAll()
      .where('conversationKey', '=', proposal.conversationKey)
      .where('messageId', '=', proposal.messageId ?? '')
      .executeTakeFirst();
  const seen = await find();
  if (!seen) return undefined;
  const lane = await lockLane(tx, seen.laneKey);
  // Read again under the lock, since the message may have been taken in between.
  const row = await find();
  return lane && row ? { row, lane } : undefined;
}

async function editContext(
  tx: Tx,
  accepting: AcceptEventInput,
  change: (content: InboxContent) => InboxContent,
): Promise<Acceptance> {
  const row = await findContext(tx, accepting);
  if (!row) return { kind: 'ignored', reason: 'unknown-message' };
  const content = json.content(row.content);
  if (content.sender.id !== accepting.proposal.senderId) return { kind: 'ignored', reason: 'not-the-author' };
  const changed = change(content);
  await tx.db
    .updateTable('groupContext')
    .set({ content: JSON.stringify(changed) })
    .where('laneKey', '=', row.laneKey)
    .where('seq', '=', row.seq)
    .execute();
  if (!isSameFiles(changed.attachments, content.attachments)) await withdrawFiles(tx, accepting, row);
  return { kind: 'noted', effect: 'context-replaced' };
}

async function deleteContext(
  tx: Tx,
  accepting: AcceptEventInput,
  { isVouched }: DeleteDecision,
): Promise<Acceptance> {
  const row = await findContext(tx, accepting);
  if (!row) return { kind: 'ignored', reason: 'unknown-message' };
  if (!isVouched && json.content(row.content).sender.id !== accepting.proposal.senderId)
    return { kind: 'ignored', reason: 'not-the-author' };
  await tx.db
    .deleteFrom('groupContext')
    .where('laneKey', '=', row.laneKey)
    .where('seq', '=', row.seq)
    .execute();
  await withdrawFiles(tx, accepting, row);
  return { kind: 'noted', effect: 'context-removed' };
}

type ContextRow = { readonly laneKey: string; readonly content: string };

/** Takes files that were deleted or replaced back from the waiting messages that would have brought them along. */
async function withdrawFiles(
  tx: Tx,
  { proposal: { conversationKey }, effects }: AcceptEventInput,
  { laneKey, content }: ContextRow,
): Promise<void> {
  const withdrawn = new Set(json.content(content).attachments.map(fileKeyOf));
  if (withdrawn.size === 0) return;
  const rows = await tx.db
    .selectFrom('inbox')
    .select(['id', 'content', 'isFetching'])
    .where('laneKey', '=', laneKey)
    .where(isOpenItem())
    .execute();
  for (const row of rows) {
    const waiting = json.content(row.content);
    const keeps = (file: IncomingFile | undefined) =>
      file?.of === undefined || !withdrawn.has(fileKeyOf(file));
    const attachments = waiting.attachments.filter(keeps);
    if (attachments.length === waiting.attachments.length) continue;
    const stored = waiting.stored?.filter((_, index) => keeps(waiting.attachments[index]));
    const rest = { ...waiting, attachments, ...(stored && { stored }) };
    await changeRow(tx, 'inbox', row.id, { content: JSON.stringify(rest) });
    if (row.isFetching === 1) effects.fetches.push(row.id);
  }
  await leaveContextFiles(tx, laneKey, { entries: [{ conversationKey, content }] });
}

/** Finds the remembered message and locks its lane. Notes about it, such as a reaction, are left out. */
async function findContext(tx: Tx, { proposal }: AcceptEventInput) {
  const find = async () => {
    const rows = await tx.db
      .selectFrom('groupContext')
      .select(['laneKey', 'seq', 'content'])
      .where('conversationKey', '=', proposal.conversationKey)
      .where('messageId', '=', proposal.messageId ?? '')
      .where('messageId', 'is not', null)
      .where('shownInRun', 'is', null)
      .execute();
    return rows.find(({ content }) => json.content(content).note === undefined);
  };
  const seen = await find();
  if (!seen) return undefined;
  await lockLane(tx, seen.laneKey);
  return find();
}

/**
 * Changes or drops the message kept for a stranger or for a group, if the event is about it. The caller must lock the
 * account.
 */
export async function changeKept(
  tx: Tx,
  { input: { account }, proposal: { senderId, messageId, conversationKey } }: AcceptEventInput,
  change: KeptChange,
): Promise<void> {
  const changed = (known: KeptMessage) =>
    change === 'deleted' ? undefined : { ...known, content: withNewText(known.content, change).changed };
  await changeKeptMention(tx, { subject: conversationKey, senderId, messageId }, changed);
  const row = await tx.db
    .selectFrom('pairings')
    .select(['id', 'kept'])
    .where('account', '=', account)
    .where('peerId', '=', senderId)
    .executeTakeFirst();
  const known = json.kept(row?.kept ?? null);
  if (row === undefined || known === undefined || known.messageId !== messageId) return;
  const next = changed(known);
  if (next === undefined) await leaveFiles(tx, { route: known.route, files: known.content.attachments });
  await changeRow(tx, 'pairings', row.id, { kept: next === undefined ? null : JSON.stringify(next) });
}

type Migration = Extract<Decision, { kind: 'migrate' }>;
type Membership = Extract<Decision, { kind: 'membership' }>;

/**
 * Moves a conversation to its new id. Its session key is still derived from the first id, so the session, settings and
 * allow-list entry remain; unsent parts move along. Repeating it changes nothing.
 */
export async function migrateConversation(
  tx: Tx,
  accepting: AcceptEventInput,
  { from, to, toKey }: Migration,
): Promise<Acceptance> {
  await moveConversation(tx, { fromKey: accepting.proposal.conversationKey, from, toKey, to });
  accepting.effects.deliveries.push(toKey);
  return { kind: 'ignored', reason: 'migrated' };
}

export async function changeMembership(
  tx: Tx,
  accepting: AcceptEventInput,
  { isMember }: Membership,
): Promise<Acceptance> {
  const key = accepting.proposal.conversationKey;
  await ensureConversation(tx, key);
  // The bot leaves the old id of a group that has moved to another.
  if ((await movedTo(tx, key)) !== undefined) return { kind: 'ignored', reason: 'migrated' };
  if (isMember) await markReachable(tx, key);
  else await markUnreachable(tx, key);
  return { kind: 'ignored', reason: 'membership' };
}
