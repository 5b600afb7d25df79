/**
 * Edits, deletes and reactions are input. A waiting message is replaced or cancelled; one that the
 * active run has taken is corrected by a steer, or its deletion offers a stop; after the run they are
 * noted in the transcript and start nothing. Only its own sender changes a message.
 */
import type { Acceptance } from '#contracts/acceptance.ts';
import type { Tx } from '../command.ts';
import { insertPart } from '../delivery/insert-part.ts';
import { json } from '../json.ts';
import { lockLane, takeSeq } from '../lanes/lane-row.ts';
import { appendNote } from '../transcript/append.ts';
import type { Accepting } from './accepting.ts';
import type { Decision } from './proposal.ts';
import { rememberContext } from './remember-context.ts';

type EditDecision = Extract<Decision, { kind: 'edit' }>;
type DeleteDecision = Extract<Decision, { kind: 'delete' }>;
type ReactionDecision = Extract<Decision, { kind: 'reaction' }>;

export async function applyEdit(
  tx: Tx,
  accepting: Accepting,
  { text, prompt, newId }: EditDecision,
): Promise<Acceptance> {
  const found = await findMessage(tx, accepting);
  if (!found) return editContext(tx, accepting, { text, prompt });
  const { row, lane } = found;
  const content = json.content(row.content);
  if (content.text === text) return { kind: 'ignored', reason: 'unchanged' };
  const changed = JSON.stringify({ ...content, text, prompt });
  await tx.db.updateTable('inbox').set({ content: changed }).where('id', '=', row.id).execute();
  if (row.state === 'held' || row.state === 'waiting') return { kind: 'noted', effect: 'replaced' };
  if (row.state === 'taken' && row.runId === lane.runId) {
    const { proposal, effects } = accepting;
    const note = { kind: 'correction', of: row.messageId ?? row.id } as const;
    const { attachments: _, stored: __, ...rest } = content;
    await tx.db
      .insertInto('inbox')
      .values({
        ...row,
        id: newId,
        seq: await takeSeq(tx, lane.key),
        state: 'waiting',
        bundle: null,
        outcome: null,
        messageId: null,
        content: JSON.stringify({
          ...rest,
          text,
          prompt: `(Correction of an earlier message.) ${prompt}`,
          attachments: [],
          sentAt: tx.now,
          note,
        }),
        isFetching: 0,
        dueAt: tx.now,
        runId: null,
        transcriptId: null,
        createdAt: tx.now,
        senderId: proposal.senderId,
      })
      .execute();
    effects.arrivals.push(lane.key);
    effects.wakes.push({ laneKey: lane.key, class: lane.class, delayMs: 0 });
    return { kind: 'noted', effect: 'steered' };
  }
  if (row.transcriptId === null) return { kind: 'noted', effect: 'ended' };
  await appendNote(tx, {
    sessionId: lane.sessionId,
    text: `${content.sender.name} edited an earlier message. It now reads: ${text}`,
  });
  return { kind: 'noted', effect: 'after-run' };
}

export async function applyDelete(
  tx: Tx,
  accepting: Accepting,
  { offer }: DeleteDecision,
): Promise<Acceptance> {
  const found = await findMessage(tx, accepting);
  if (!found) return deleteContext(tx, accepting);
  const { row, lane } = found;
  if (row.state === 'held' || row.state === 'waiting') {
    await tx.db
      .updateTable('inbox')
      .set({ state: 'ended', outcome: 'cancelled', outcomeReason: 'deleted' })
      .where('id', '=', row.id)
      .execute();
    return { kind: 'noted', effect: 'cancelled' };
  }
  if (row.state === 'taken' && row.runId === lane.runId) {
    const { proposal, input, effects } = accepting;
    const key = `${input.account}:${proposal.eventKey}:offer`;
    const content = { kind: 'text', text: { text: offer.text, spans: [] } } as const;
    effects.deliveries.push(await insertPart(tx, { key, route: offer.route, content, purpose: 'notice' }));
    return { kind: 'noted', effect: 'stop-offered' };
  }
  if (row.transcriptId !== null) {
    const { sender } = json.content(row.content);
    await appendNote(tx, { sessionId: lane.sessionId, text: `${sender.name} deleted an earlier message.` });
  }
  return { kind: 'noted', effect: 'after-run' };
}

/** A reaction is shown to the agent at its next turn and starts nothing. */
export async function applyReaction(
  tx: Tx,
  accepting: Accepting,
  { content, limit }: ReactionDecision,
): Promise<Acceptance> {
  const { proposal, input } = accepting;
  const laneKey = (await findMessage(tx, accepting))?.lane.key ?? (await laneOfReceipt(tx, accepting));
  if (laneKey === undefined) return { kind: 'ignored', reason: 'unknown-message' };
  await lockLane(tx, laneKey);
  await rememberContext(tx, {
    laneKey,
    account: input.account,
    messageId: proposal.messageId,
    content,
    limit,
  });
  return { kind: 'noted', effect: 'reaction' };
}

async function findMessage(tx: Tx, { proposal }: Accepting) {
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
  // Read again under the lock: the message may have been taken in between.
  const row = await find();
  if (!lane || !row) return undefined;
  const isReaction = proposal.kind === 'reaction';
  return isReaction || row.senderId === proposal.senderId || proposal.kind === 'delete'
    ? { row, lane }
    : undefined;
}

async function laneOfReceipt(tx: Tx, { proposal }: Accepting): Promise<string | undefined> {
  const row = await tx.db
    .selectFrom('receipts')
    .innerJoin('outbox', 'outbox.key', 'receipts.partKey')
    .select('outbox.laneKey')
    .where('receipts.conversationKey', '=', proposal.conversationKey)
    .where('receipts.messageId', '=', proposal.messageId ?? '')
    .executeTakeFirst();
  return row?.laneKey ?? undefined;
}

async function editContext(
  tx: Tx,
  accepting: Accepting,
  edit: { text: string; prompt: string },
): Promise<Acceptance> {
  const row = await findContext(tx, accepting);
  if (!row) return { kind: 'ignored', reason: 'unknown-message' };
  const content = json.content(row.content);
  if (content.sender.id !== accepting.proposal.senderId)
    return { kind: 'ignored', reason: 'unknown-message' };
  await tx.db
    .updateTable('groupContext')
    .set({ content: JSON.stringify({ ...content, ...edit }) })
    .where('laneKey', '=', row.laneKey)
    .where('seq', '=', row.seq)
    .execute();
  return { kind: 'noted', effect: 'context-replaced' };
}

async function deleteContext(tx: Tx, accepting: Accepting): Promise<Acceptance> {
  const row = await findContext(tx, accepting);
  if (!row) return { kind: 'ignored', reason: 'unknown-message' };
  await tx.db
    .deleteFrom('groupContext')
    .where('laneKey', '=', row.laneKey)
    .where('seq', '=', row.seq)
    .execute();
  return { kind: 'noted', effect: 'context-removed' };
}

function findContext(tx: Tx, { proposal, input }: Accepting) {
  return tx.db
    .selectFrom('ledger')
    .innerJoin('groupContext', (join) =>
      join
        .onRef('groupContext.messageId', '=', 'ledger.messageId')
        .onRef('groupContext.account', '=', 'ledger.account'),
    )
    .select(['groupContext.laneKey', 'groupContext.seq', 'groupContext.content'])
    .where('ledger.account', '=', input.account)
    .where('ledger.conversationKey', '=', proposal.conversationKey)
    .where('ledger.messageId', '=', proposal.messageId ?? '')
    .where('groupContext.shownInRun', 'is', null)
    .executeTakeFirst();
}
