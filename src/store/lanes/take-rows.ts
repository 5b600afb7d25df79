import type { AttachmentRef, StoredAttachment } from '#contracts/attachment.ts';
import type { TranscriptId } from '#contracts/ids.ts';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import { cleanLabel } from '../../texts/clean-untrusted.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow } from '../base/row-by-key.ts';
import { newRowId } from '../base/row-id.ts';
import type { WaitingRow } from '../items/waiting-rows.ts';
import { appendMessage } from '../rows/append-transcript.ts';
import { takeItem } from '../rows/item-states.ts';
import type { Lane } from '../rows/lane-row.ts';

/** How text that is not the prompt itself is framed for the model; holds this turn's random boundary. */
export type TextFraming = {
  /** Sentence that tells the model the time; it is stored with the message, so that no later request differs. */
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
  /** Messages of the lane that no run was shown, if the caller has read them. */
  readonly context?: readonly string[];
  /** All but the last count as merged into it; else each is answered by itself. */
  readonly merges: boolean;
  /** They go back should the run end without having consumed them. */
  readonly isKept?: boolean;
};

/**
 * Step 5, take: moves waiting messages into the transcript. Leaving the queue and entering the transcript are
 * one transaction, so no message is lost in between.
 */
export async function takeRows(
  tx: StepTx,
  { lane, runId, framing, rows, context, merges, isKept = false }: TakeInput,
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
    // The lines are read before a message, by the run that takes it.
    rows.length === 0 ? undefined : await takeOverflow(tx, { lane, runId, framing }),
    await showContext(tx, context ?? (await unshownIn(tx, lane)), {
      laneKey: lane.key,
      runId,
      framing,
    }),
  ];
  for (const text of before)
    if (text !== undefined) await append('system', [{ type: 'text', data: { text } }]);

  for (const [index, row] of rows.entries()) {
    const transcriptId = await append('user', partsOf(tx, row), noteOf(lane, row, framing));
    const isMerged = merges && index < rows.length - 1;
    await takeItem(tx, { id: row.id, runId, transcriptId, isMerged, isKept });
  }
  return messages;
}

/** In groups each message has a label that says who wrote it and when. */
function noteOf({ chatKind }: Lane, row: WaitingRow, { now }: TextFraming): string | undefined {
  const isLabelled = chatKind === 'group' && row.sourceKey === null;
  if (isLabelled || now === '') return undefined;
  const name = cleanLabel(row.content.sender.name);
  return name === '' ? now : `${now} From ${name} (${row.authority}).`;
}

/** Summarized items are merged into this run: their rows name it. */
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

/** The remembered messages are shown once: to this run, never again. */
async function showContext(
  tx: Tx,
  context: readonly string[],
  { laneKey, runId, framing }: { laneKey: string; runId: string; framing: TextFraming },
): Promise<string | undefined> {
  if (context.length === 0) return undefined;
  await tx.db
    .updateTable('groupContext')
    .set({ shownInRun: runId })
    .where('laneKey', '=', laneKey)
    .where('shownInRun', 'is', null)
    .execute();
  return [
    framing.contextIntro,
    ...context.map((content) => json.content(content).prompt),
    framing.contextOutro,
  ].join('\n');
}

/** Remembered messages of the lane that no run was shown, each as it is stored. */
async function unshownIn(tx: Tx, { key }: Lane): Promise<readonly string[]> {
  return (await unshownContext.all(tx, { laneKey: key })).map(({ content }) => content);
}

const unshownContext = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db
    .selectFrom('groupContext')
    .select('content')
    .where('laneKey', '=', of.laneKey)
    .where('shownInRun', 'is', null)
    .orderBy('seq'),
);

function partsOf({ texts }: StepTx, row: WaitingRow): readonly MessagePart[] {
  const { content } = row;
  const stored = content.stored ?? content.attachments.map((ref) => missing(ref, texts.fileTooLate));
  const names = stored.map(describeAttachment).filter((line) => line !== undefined);
  const text = [content.prompt, ...names].filter((line) => line !== '').join('\n');
  return [
    { type: 'text', data: { text } },
    ...stored.flatMap((file): MessagePart[] =>
      file.kind === 'stored' ? [{ type: 'binary', data: { path: file.path, mime_type: file.mimeType } }] : [],
    ),
  ];
}

function missing({ name, kind }: AttachmentRef, reason: string): StoredAttachment {
  return { kind: 'missing', name: name ?? kind, reason };
}

/**
 * Tells the model of a file that it isn't shown. The name is whatever somebody called the file: it must not read like our
 * words, or like the sender's.
 */
export function describeAttachment(file: StoredAttachment): string | undefined {
  const name = cleanLabel(file.name) || 'without a name';
  if (file.kind === 'missing') return `[attachment ${name} is missing: ${file.reason}]`;
  return file.mimeType.startsWith('image/')
    ? undefined
    : `[attachment ${name}, ${file.mimeType}, ${file.sizeBytes} bytes]`;
}
