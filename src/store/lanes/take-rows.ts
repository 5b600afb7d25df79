import type { TranscriptId } from '#contracts/ids.ts';
import type { ItemSource } from '#contracts/inbox-item.ts';
import type { MarkSettings } from '#contracts/mark.ts';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import { routeOf } from '#contracts/route.ts';
import { cleanLabel } from '../../texts/untrusted-text.ts';
import type { StepTx, StoreQuery, Tx } from '../base/command.ts';
import { type InboxContent, json } from '../base/json.ts';
import { newRowId } from '../base/keys.ts';
import { fileLine } from '../base/one-line.ts';
import { changeRow } from '../base/row-access.ts';
import { insertNotice } from '../delivery/part.ts';
import { marksOf } from '../items/marks.ts';
import type { WaitingRow } from '../items/waiting-items.ts';
import { leaveContextFiles, readUnshown } from '../rows/group-context.ts';
import { takeItem } from '../rows/item.ts';
import type { Lane } from '../rows/lane.ts';
import { markTaken } from '../rows/mark.ts';
import { appendMessage } from '../rows/transcript.ts';
import { isBeingRead, partsWithFiles, settledFiles, unreadFilesNotice } from './file-parts.ts';

/** How text other than the prompt itself is framed for the model; contains this turn's random delimiter. */
export type TextFraming = {
  /** Sentence that tells the model the time, stored with the message so that later requests repeat it exactly. */
  readonly now: string;
  readonly contextIntro: string;
  readonly contextOutro: string;
  readonly overflowIntro: string;
};

export type TakeInput = {
  readonly lane: Lane;
  readonly runId: string;
  readonly framing: TextFraming;
  readonly rows: readonly WaitingRow[];
  /** The lane's messages that no run has been shown, if the caller has read them. */
  readonly context?: readonly string[];
  /** If true, all but the last count as merged into it; otherwise each is answered on its own. */
  readonly merges: boolean;
  /** If true, they are requeued if the run ends without having used them. */
  readonly isKept?: boolean;
  /** Absent: the messages get no marks. */
  readonly marks?: MarkSettings | undefined;
};

/**
 * Step 5, take: moves waiting messages into the transcript. They leave the queue and enter the transcript in one
 * transaction, so no message is lost in between.
 */
export async function takeRows(
  tx: StepTx,
  { lane, runId, framing, rows, context, merges, isKept = false, marks }: TakeInput,
): Promise<readonly AgentMessage[]> {
  const messages: AgentMessage[] = [];
  const append = async (role: 'user' | 'system', parts: readonly MessagePart[], note?: string) => {
    const id = newRowId() as string as TranscriptId;
    const message = { id, role, parts, ...(note !== undefined && { note }) };
    await appendMessage(tx, { ...message, sessionId: lane.sessionId, runId, isFinished: true });
    messages.push({ ...message, createdAt: tx.now });
    return id;
  };

  const before = [
    // The model reads the overflow's lines before a message, so only a run that takes one gets them.
    rows.length === 0 ? undefined : await takeOverflow(tx, { lane, runId, framing }),
    await showContext(tx, context ?? (await readUnshown(tx, lane.key)), {
      ...{ laneKey: lane.key, runId, framing },
      taken: rows.map(({ content }) => content),
    }),
  ];
  for (const text of before)
    if (text !== undefined) await append('system', [{ type: 'text', data: { text } }]);

  for (const [index, row] of rows.entries()) {
    const transcriptId = await append('user', await partsToShow(tx, row), noteOf(lane, row, framing));
    const isMerged = merges && index < rows.length - 1;
    await takeItem(tx, { id: row.id, runId, transcriptId, isMerged, isKept });
  }
  const { key: laneKey, chatKind } = lane;
  for (const mark of marks ? marksOf(rows, { chatKind, merges }, marks) : [])
    await markTaken(tx, { ...mark, laneKey });
  return messages;
}

/** Returns the label that names the author and time of each message in a group. */
function noteOf({ chatKind }: Lane, row: WaitingRow, { now }: TextFraming): string | undefined {
  const isLabeled = chatKind === 'group' && row.sourceKey === null;
  if (isLabeled || now === '') return undefined;
  const name = cleanLabel(row.content.sender.name);
  return name === '' ? now : `${now} From ${name} (${row.authority}).`;
}

/** Merges the summarized items into this run: their rows name it. */
async function takeOverflow(
  tx: Tx,
  { lane, runId, framing }: Pick<TakeInput, 'lane' | 'runId' | 'framing'>,
): Promise<string | undefined> {
  const summaries = json.summaries(lane.overflow);
  if (summaries.length === 0) return undefined;
  const ids = summaries.map((summary) => summary.inboxId);
  await tx.db.updateTable('inbox').set({ runId }).where('id', 'in', ids).execute();
  await changeRow(tx, 'lanes', lane.key, { overflow: null });
  const lines = summaries.map((summary) => summary.line);
  return [framing.overflowIntro, ...lines, framing.contextOutro].join('\n');
}

type ContextScene = Pick<TakeInput, 'runId' | 'framing'> & {
  readonly laneKey: string;
  /** Content of the messages that this run takes. */
  readonly taken: readonly InboxContent[];
};

/** Shows the remembered messages to this run, and never again. */
async function showContext(
  tx: Tx,
  context: readonly string[],
  { laneKey, runId, framing, taken }: ContextScene,
): Promise<string | undefined> {
  if (context.length === 0) return undefined;
  const entries = await tx.db
    .updateTable('groupContext')
    .set({ shownInRun: runId })
    .where('laneKey', '=', laneKey)
    .where('shownInRun', 'is', null)
    .returning(['conversationKey', 'content'])
    .execute();
  await leaveContextFiles(tx, laneKey, { entries, taken });
  return [
    framing.contextIntro,
    ...context.map((content) => contextEntry(json.content(content))),
    framing.contextOutro,
  ].join('\n');
}

/** Returns a remembered message with a line for each of its own files. */
function contextEntry({ prompt, attachments }: InboxContent): string {
  const files = attachments.filter(({ of }) => of === undefined).map(fileLine);
  return [prompt, ...files].filter((line) => line !== '').join('\n');
}

/** Returns the message's parts. Files that come too late have their end now, of which the sender is told. */
async function partsToShow(tx: StepTx, row: WaitingRow): Promise<readonly MessagePart[]> {
  const { content } = row;
  const isSettled = content.stored !== undefined && !content.stored.some(isBeingRead);
  if (isSettled || content.attachments.length === 0) return partsWithFiles(content, content.stored ?? []);
  const stored = settledFiles(content, tx.texts);
  const settled = JSON.stringify({ ...content, stored });
  await changeRow(tx, 'inbox', row.id, { content: settled, isFetching: 0 });
  const notice = unreadFilesNotice(tx.texts, row.id, stored);
  const route = routeOf(row.target);
  if (notice !== undefined && route !== undefined) await insertNotice(tx, { ...notice, route });
  return partsWithFiles(content, stored);
}

/** The origin of an item that a run has taken. */
export type TakenOrigin = { readonly source: ItemSource; readonly sourceKey: string | null };

/** Says whether only schedules have asked for what is taken. */
export function isHeartbeatOnly(taken: readonly Pick<TakenOrigin, 'source'>[]): boolean {
  return taken.length > 0 && taken.every(({ source }) => source === 'schedule');
}

/** Reads the origins of what the run has taken and not answered yet, for the answer that is about to be stored. */
export const readTakenOrigins: StoreQuery<{ readonly runId: string }, readonly TakenOrigin[]> = {
  query: 'readTakenOrigins',
  run: (tx, { runId }) =>
    tx.db
      .selectFrom('inbox')
      .select(['source', 'sourceKey'])
      .where('runId', '=', runId)
      .where('answer', 'is', null)
      .execute(),
};
