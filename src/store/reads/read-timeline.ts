import { sql } from 'kysely';
import { sentFile } from '#channel-kit/client-delivery.ts';
import type { StoredAttachment } from '#contracts/attachment.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { skipped, textOf } from '#contracts/message.ts';
import {
  type AskedCommand,
  fileMessageId,
  filesOf as filesOfPart,
  type OutboundFile,
} from '#contracts/outbound.ts';
import type { TimelineItem, TimelineStep } from '#contracts/timeline.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { type InboxContent, json, type StoredContent } from '../base/json.ts';
import { findRow } from '../base/row-access.ts';

/** A page of a lane's messages. */
export type TimelineRequest = { readonly laneKey: string; readonly after?: number; readonly limit: number };

/**
 * Reads people's messages and the answers, in the lane's own order: with `after`, the oldest `limit` items after that
 * position, so that a client pages forward without a gap; otherwise the newest `limit`. A page that isn't full is the
 * last one; items stored while it is read are left for the next.
 */
export const readTimeline: StoreQuery<TimelineRequest, readonly TimelineItem[]> = {
  query: 'readTimeline',
  run: async (tx, request) => {
    const end = await readEnd(tx, request.laneKey);
    const beside: Beside = { before: new Map(), after: new Map() };
    const items = [...(await readSaid(tx, request)), ...(await readAnswered(tx, request, beside))];
    items.sort((a, b) => a.position - b.position);
    const page = request.after === undefined ? items.slice(-request.limit) : items.slice(0, request.limit);
    const shown = page.filter(({ position }) => position < end);
    // Added after the limit, because a client reads on after the position of a stored row.
    return shown.flatMap((item) => [
      ...(beside.before.get(item.position) ?? []),
      item,
      ...(beside.after.get(item.position) ?? []),
    ]);
  },
};

/** Items without a row of their own, by the position of one: the command that it answers, and more files of an album. */
type Beside = Readonly<Record<'before' | 'after', Map<number, readonly TimelineItem[]>>>;

/**
 * Reads the lane's end, before which everything is stored. Each later query sees the commits of its own moment, so it
 * could return an answer without an earlier message, and the client would continue after both.
 */
async function readEnd(tx: Tx, laneKey: string): Promise<number> {
  const lane = await findRow(tx, 'lanes', laneKey, ['nextSeq']);
  return lane?.nextSeq ?? 0;
}

async function readSaid(
  tx: Tx,
  { laneKey, after, limit }: TimelineRequest,
): Promise<readonly TimelineItem[]> {
  const rows = await tx.db
    .selectFrom('inbox')
    .select(['seq', 'content', 'createdAt', 'messageId', 'id', 'state', 'outcome', 'route'])
    .select(['runId', 'answer'])
    .where('laneKey', '=', laneKey)
    .where('seq', '>', after ?? 0)
    .where('source', '=', 'platform')
    .where('state', '<>', 'held')
    .orderBy('seq', after === undefined ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  const onTheirWay = await pendingAnswers(tx, rows);
  const reasons = await readFailures(tx, rows);
  return rows.map((row) => {
    const content = json.content(row.content);
    const reason = row.outcome === 'failed' ? reasons.get(row.runId) : undefined;
    return {
      position: row.seq,
      at: row.createdAt,
      author: { kind: 'person', name: content.sender.name },
      messageId: row.messageId ?? row.id,
      channel: json.route(row.route).channel,
      text: content.text,
      ...filesOf(content),
      state:
        row.outcome === 'answered' && onTheirWay.has(row.answer) ? 'delivering' : (row.outcome ?? row.state),
      ...(reason && { reason }),
    };
  });
}

/** Reads why the runs of failed messages failed, by run. */
async function readFailures(
  tx: Tx,
  rows: readonly EndedRow[],
): Promise<ReadonlyMap<string | null, string | null>> {
  const failed = rows.flatMap(({ outcome, runId }) => (outcome === 'failed' && runId ? [runId] : []));
  if (failed.length === 0) return new Map();
  const ids = [...new Set(failed)];
  const runs = await tx.db.selectFrom('runs').select(['id', 'detail']).where('id', 'in', ids).execute();
  return new Map(runs.map(({ id, detail }) => [id, detail]));
}

/** Returns the labels of a message's own files; those of a quoted message aren't its own. */
function filesOf({ attachments, stored }: InboxContent) {
  const isOwn = ({ of }: { readonly of?: string }) => of === undefined;
  const own = attachments.filter(isOwn);
  if (own.length === 0) return {};
  return { files: stored?.filter(isOwn).map(storedLabel) ?? own.map(({ name, kind }) => name ?? kind) };
}

function storedLabel(file: StoredAttachment): string {
  return file.kind === 'stored' ? file.name : `${file.name} (${file.reason})`;
}

type EndedRow = {
  readonly outcome: string | null;
  readonly runId: string | null;
  readonly answer: string | null;
};

/**
 * Reads the answers whose parts haven't all ended: until then a message's outcome is provisional. The query uses the
 * index on a run's parts.
 */
async function pendingAnswers(tx: Tx, rows: readonly EndedRow[]): Promise<ReadonlySet<string | null>> {
  const runIds = rows.flatMap(({ outcome, runId }) => (outcome === 'answered' && runId ? [runId] : []));
  if (runIds.length === 0) return new Set();
  const open = await tx.db
    .selectFrom('outbox')
    .select('answer')
    .where('runId', 'in', [...new Set(runIds)])
    .where('answer', 'is not', null)
    .where('purpose', '=', 'reply')
    .where('state', 'in', ['pending', 'sending'])
    .execute();
  return new Set(open.map(({ answer }) => answer));
}

/** Reads the parts that were sent, and puts what they show beside their own message into `beside`. */
async function readAnswered(
  tx: Tx,
  { laneKey, after, limit }: TimelineRequest,
  beside: Beside,
): Promise<readonly TimelineItem[]> {
  const rows = await tx.db
    .selectFrom('outbox')
    .select(['seq', 'content', 'createdAt', 'key', 'state', 'purpose', 'route', 'runId', 'answer'])
    .where('laneKey', '=', laneKey)
    .where('seq', '>', after ?? 0)
    // An edit is an answer that took over a preview. Filtered here, not after the limit, because a page that lost rows
    // to a filter would look like the last one.
    .where(contentKind(tx), 'in', ['text', 'edit', 'media'])
    .orderBy('seq', after === undefined ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  const first = firstParts(rows);
  const steps = await readSteps(tx, [...first.values()]);
  const written = await readWritten(tx, [...first.values()]);
  return rows.flatMap((row): readonly TimelineItem[] => {
    const answer = first.get(row.key)?.answer ?? '';
    const before = steps.get(answer);
    const markdown = written.get(answer);
    const content = json.outbound(row.content);
    if (content.kind !== 'text' && content.kind !== 'edit' && content.kind !== 'media') return [];
    const { text, spans } = (content.kind === 'media' ? content.caption : content.text) ?? plainText('');
    const { channel, replyTo } = json.route(row.route);
    const position = row.seq ?? 0;
    const item: TimelineItem = {
      position,
      at: row.createdAt,
      author: row.purpose === 'notice' ? { kind: 'notice' } : { kind: 'agent' },
      messageId: row.key,
      channel,
      text: '',
      state: row.state,
    };
    if ('asked' in content && content.asked)
      beside.before.set(position, [askedItem(row, content.asked, channel)]);
    const [file, ...more] = content.kind === 'media' ? filesOfPart(content) : [];
    beside.after.set(
      position,
      more.map((one, index) => fileItem(item, one, index + 1)),
    );
    return [
      {
        ...item,
        text,
        ...(spans.length > 0 && { spans }),
        ...(replyTo !== undefined && { replyTo }),
        ...buttonsOf(content),
        ...(file && { file: sentFile(file, file.path) }),
        ...(before && { steps: before }),
        ...(markdown !== undefined && markdown !== text && { markdown }),
      },
    ];
  });
}

function fileItem(item: TimelineItem, file: OutboundFile, index: number): TimelineItem {
  return { ...item, messageId: fileMessageId(item.messageId, index), file: sentFile(file, file.path) };
}

function buttonsOf(content: StoredContent) {
  const { buttons = [] } = 'buttons' in content ? content : {};
  return buttons.length > 0 && { buttons };
}

/** A command that took effect at once has no row of its own; it precedes its answer. */
function askedItem(
  { seq, createdAt }: { readonly seq: number | null; readonly createdAt: number },
  { messageId, name, text }: AskedCommand,
  channel: string,
): TimelineItem {
  const author = { kind: 'person', name } as const;
  return { position: (seq ?? 0) - 0.5, at: createdAt, author, messageId, channel, text, state: 'command' };
}

/** Reads the answers' texts as the model wrote them. */
async function readWritten(tx: Tx, answers: readonly AnswerRef[]): Promise<ReadonlyMap<string, string>> {
  if (answers.length === 0) return new Map();
  const ids = answers.map(({ answer }) => answer);
  const rows = await tx.db.selectFrom('transcript').select(['id', 'parts']).where('id', 'in', ids).execute();
  return new Map(rows.map(({ id, parts }) => [id, textOf(json.parts(parts))]));
}

type Part = {
  readonly key: string;
  readonly seq: number | null;
  readonly purpose: string;
  readonly runId: string | null;
  readonly answer: string | null;
};

/** Returns the answers, by the key of each one's first part. */
function firstParts(parts: readonly Part[]): ReadonlyMap<string, AnswerRef> {
  const seen = new Set<string>();
  const first = new Map<string, AnswerRef>();
  for (const { key, purpose, runId, answer } of parts.toSorted((a, b) => (a.seq ?? 0) - (b.seq ?? 0))) {
    if (purpose !== 'reply' || runId === null || answer === null || seen.has(answer)) continue;
    seen.add(answer);
    first.set(key, { runId, answer });
  }
  return first;
}

function contentKind(tx: Tx) {
  const content = sql.ref('content');
  return tx.dialect === 'postgres'
    ? sql<string>`(${content}::json ->> 'kind')`
    : sql<string>`json_extract(${content}, '$.kind')`;
}

/** Reference to an answer: its run and its message in the transcript. */
type AnswerRef = { readonly runId: string; readonly answer: string };

/** Maximum number of tool calls read for one page. */
const maxSteps = 1_000;

/** Reads the runs' ended tool calls, grouped by the answer that follows each. */
async function readSteps(
  tx: Tx,
  answers: readonly AnswerRef[],
): Promise<ReadonlyMap<string, readonly TimelineStep[]>> {
  const steps = new Map<string, TimelineStep[]>();
  if (answers.length === 0) return steps;
  const calls = await tx.db
    .selectFrom('toolCalls')
    .innerJoin('transcript', 'transcript.id', 'toolCalls.messageId')
    .select(['toolCalls.runId', 'toolCalls.name', 'toolCalls.isError', 'transcript.position'])
    // Reads nothing else of a result, which may be 32 KB.
    .select((eb) =>
      eb
        .case()
        .when('toolCalls.result', 'like', `%"content":${JSON.stringify(skipped)}%`)
        .then(1)
        .else(0)
        .end()
        .as('isSkipped'),
    )
    .where('toolCalls.runId', 'in', [...new Set(answers.map(({ runId }) => runId))])
    .where('toolCalls.state', '=', 'done')
    .orderBy('transcript.position')
    .orderBy('toolCalls.ordinal')
    .limit(maxSteps)
    .execute();
  if (calls.length === 0) return steps;
  const placed = await tx.db
    .selectFrom('transcript')
    .select(['id', 'runId', 'position'])
    .where(
      'id',
      'in',
      answers.map(({ answer }) => answer),
    )
    .orderBy('position')
    .execute();
  for (const { runId, name, isError, isSkipped, position } of calls) {
    const next = placed.find((answer) => answer.runId === runId && answer.position > position);
    if (next === undefined) continue;
    const failed = isSkipped === 1 ? 'skipped' : 'failed';
    steps.set(next.id, [...(steps.get(next.id) ?? []), { name, state: isError === 1 ? failed : 'done' }]);
  }
  return steps;
}
