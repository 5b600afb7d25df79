import type { StoreQuery, Tx } from '../../base/command.ts';
import { findRow } from '../../base/row-access.ts';
import { taskItemsOf } from '../../tasks/task.ts';
import { readPartKey } from '../own-messages.ts';
import { readEventsOf, readItems } from './read-items.ts';
import {
  approvalOfPart,
  approvalsOfEvents,
  type Origin,
  originOfApproval,
  originOfPart,
  partKeysOf,
  partKeysOfApproval,
  readApprovals,
  readCallApprovals,
  readParts,
  runOfCallApproval,
} from './read-parts.ts';
import { type RecordTrace, readRecord } from './read-record.ts';
import { readRuns, readTree } from './read-runs.ts';
import { resolveSubject } from './resolve-subject.ts';
import type { Candidate, MessageTrace, TraceSubject } from './trace.ts';

export type WhyRequest = {
  /**
   * A platform message (`45`, `<channel>:<conversation>/45`, `<channel>/<account>/<conversation>/45`); an event key;
   * the id of an inbox row, run, trace, outbox part, transcript row, sub-agent or task (its first 5 letters suffice), tool call
   * (`<run>/<call>`) or question; a pairing code; or a program's own name for its message. For a session, lane,
   * conversation, bot account, process, person, sign-in or alert, the result is a record instead.
   */
  readonly id: string;
  /** Includes the beginning of each text. */
  readonly withExcerpts: boolean;
};

export type Why =
  | { readonly kind: 'account'; readonly account: MessageTrace }
  | { readonly kind: 'record'; readonly record: RecordTrace }
  /** The id matches several messages, sub-agents, tasks or calls: each is returned with an unambiguous name. */
  | { readonly kind: 'several'; readonly candidates: readonly Candidate[] }
  | { readonly kind: 'unknown' };

/** The conservation ledger: reads what became of a message and how, or what a sent message answered. */
export const readWhy: StoreQuery<WhyRequest, Why> = {
  query: 'readWhy',
  // It decides whether a message is due.
  usesClock: true,
  run: async (tx, { id, withExcerpts }) => {
    const found = await resolveSubject(tx, id);
    switch (found.kind) {
      case 'one':
        return { kind: 'account', account: await readAccount(tx, found.asked, withExcerpts) };
      case 'record':
        return { kind: 'record', record: await readRecord(tx, found.asked) };
      case 'several':
        return found;
      case 'none':
        return { kind: 'unknown' };
      default:
        return found satisfies never;
    }
  },
};

/** Entry rows of a trace, which lead to runs, and from the runs to all their rows. */
type Seeds = Origin & {
  readonly runIds: readonly string[];
  readonly taskIds: readonly string[];
  readonly partKeys: readonly string[];
  readonly approvalIds: readonly string[];
};

async function readAccount(tx: Tx, asked: TraceSubject, withExcerpts: boolean): Promise<MessageTrace> {
  const seeds = await seedsOf(tx, asked);
  const asking = { withExcerpts };
  const seedItems = await readItems(tx, { ids: seeds.itemIds, ...asking });
  const seedParts = await readParts(tx, { keys: seeds.partKeys, ...asking });
  const own = new Set(
    [...seeds.runIds, ...seedItems.map((item) => item.runId), ...seedParts.map((part) => part.runId)].filter(
      (runId) => runId !== undefined,
    ),
  );
  const { children, tasks, runIds } = await readTree(
    tx,
    { runIds: [...own], taskIds: seeds.taskIds },
    asking,
  );
  const runs = await readRuns(tx, runIds);
  const ofRuns = await readItems(tx, { runIds, ...asking });
  const items = merge([...seedItems, ...ofRuns], (item) => item.id);
  const events = await readEventsOf(tx, seeds.eventKeys, items);
  const approvalIds = [...seeds.approvalIds, ...(await approvalsOfEvents(tx, events))];
  const callApprovals = await readCallApprovals(tx, runIds, asking);
  const questions = [...approvalIds, ...callApprovals.map(({ id }) => id)];
  const partKeys = [...partKeysOf(events, items), ...questions.flatMap(partKeysOfApproval)];
  const said = [
    ...seedParts,
    ...(await readParts(tx, { runIds, ...asking })),
    ...(await readParts(tx, { keys: partKeys, ...asking })),
  ];
  return {
    asked,
    events: [...events].sort((a, b) => a.at - b.at),
    items: [...items].sort((a, b) => a.arrivedAt - b.arrivedAt || a.seq - b.seq),
    runs,
    ...{ children, tasks },
    parts: [...merge(said, (part) => part.key)].sort((a, b) => a.createdAt - b.createdAt),
    approvals: await readApprovals(tx, [...new Set(approvalIds)]),
    callApprovals,
  };
}

const noSeeds: Seeds = { eventKeys: [], itemIds: [], runIds: [], taskIds: [], partKeys: [], approvalIds: [] };

async function seedsOf(tx: Tx, asked: TraceSubject): Promise<Seeds> {
  switch (asked.kind) {
    case 'item':
      return { ...noSeeds, itemIds: [asked.id] };
    case 'run':
      return { ...noSeeds, runIds: [asked.id] };
    case 'child':
      return { ...noSeeds, runIds: await runOfChild(tx, asked.id) };
    case 'task':
      return seedsOfTask(tx, asked.id);
    case 'part':
      return seedsOfPart(tx, asked.id);
    case 'approval':
      return seedsOfApproval(tx, asked.id);
    case 'call':
      return { ...noSeeds, runIds: await runOfCall(tx, asked) };
    case 'transcript':
      return { ...noSeeds, runIds: await runOfTranscript(tx, asked.id) };
    case 'event':
      return { ...noSeeds, eventKeys: [asked], itemIds: await itemsOfEvent(tx, asked) };
    case 'message':
      return seedsOfMessage(tx, asked);
    default:
      return asked satisfies never;
  }
}

async function runOfChild(tx: Tx, id: string): Promise<readonly string[]> {
  const rows = await tx.db.selectFrom('children').select('parentRunId').where('id', '=', id).execute();
  return rows.map(({ parentRunId }) => parentRunId);
}

/** Begins with the run that has delegated it, or with the message that it came as. */
async function seedsOfTask(tx: Tx, id: string): Promise<Seeds> {
  const row = await findRow(tx, 'tasks', id, ['runId']);
  const items = tx.db
    .selectFrom('inbox')
    .select('id')
    .where('sourceKey', '=', `${taskItemsOf(id)}main`);
  const itemIds = (await items.execute()).map((item) => item.id);
  return { ...noSeeds, runIds: row ? [row.runId] : [], itemIds, taskIds: [id] };
}

async function runOfTranscript(tx: Tx, id: string): Promise<readonly string[]> {
  const row = await findRow(tx, 'transcript', id, ['runId']);
  return row?.runId == null ? [] : [row.runId];
}

async function runOfCall(
  tx: Tx,
  { messageId, callId }: Extract<TraceSubject, { kind: 'call' }>,
): Promise<readonly string[]> {
  const rows = tx.db.selectFrom('toolCalls').select('runId').where('messageId', '=', messageId);
  return (await rows.where('callId', '=', callId).execute()).map(({ runId }) => runId);
}

async function seedsOfPart(tx: Tx, key: string): Promise<Seeds> {
  const approvalId = approvalOfPart(key);
  if (approvalId === undefined) return { ...noSeeds, partKeys: [key], ...(await originOfPart(tx, key)) };
  return { ...(await seedsOfApproval(tx, approvalId)), partKeys: [key] };
}

async function seedsOfApproval(tx: Tx, id: string): Promise<Seeds> {
  const eventKeys = await originOfApproval(tx, id);
  return { ...noSeeds, approvalIds: [id], eventKeys, runIds: await runOfCallApproval(tx, id) };
}

type Event = Extract<TraceSubject, { kind: 'event' }>;

async function itemsOfEvent(tx: Tx, { account, eventKey }: Event): Promise<readonly string[]> {
  const row = await tx.db
    .selectFrom('ledger')
    .select(['inboxId', 'conversationKey', 'messageId'])
    .where('account', '=', account)
    .where('eventKey', '=', eventKey)
    .executeTakeFirst();
  if (!row) return [];
  if (row.inboxId !== null) return [row.inboxId];
  return row.messageId === null ? [] : itemsOfMessage(tx, { ...row, messageId: row.messageId });
}

type Message = { readonly conversationKey: string; readonly messageId: string };

async function itemsOfMessage(tx: Tx, { conversationKey, messageId }: Message): Promise<readonly string[]> {
  const rows = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('conversationKey', '=', conversationKey)
    .where('messageId', '=', messageId)
    .execute();
  return rows.map((row) => row.id);
}

async function seedsOfMessage(tx: Tx, message: Message): Promise<Seeds> {
  const { conversationKey, messageId } = message;
  const eventKeys = await tx.db
    .selectFrom('ledger')
    .select(['account', 'eventKey'])
    .where('messageId', '=', messageId)
    .where('conversationKey', '=', conversationKey)
    .execute();
  const partKey = await readPartKey(tx, message);
  const itemIds = await itemsOfMessage(tx, message);
  if (partKey === undefined) return { ...noSeeds, eventKeys, itemIds };
  const of = await seedsOfPart(tx, partKey);
  return { ...of, eventKeys: [...eventKeys, ...of.eventKeys], itemIds: [...itemIds, ...of.itemIds] };
}

function merge<Row>(rows: readonly Row[], keyOf: (row: Row) => string): readonly Row[] {
  return [...new Map(rows.map((row) => [keyOf(row), row])).values()];
}
