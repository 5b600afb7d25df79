/** Rows of sub-agents in any state, without the runs behind them, for tests of their readers. */
import { unique } from './builders.ts';

type Parent = { readonly sessionId: string; readonly laneKey: string; readonly runId: string };

type ChildOver = {
  readonly state?: 'queued' | 'running' | 'done';
  readonly status?: string;
  readonly label?: string;
  readonly task?: string;
  readonly depth?: number;
  readonly treeId?: string;
  readonly createdAt?: number;
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly stopAt?: number;
  readonly told?: string;
  readonly result?: string;
  readonly authority?: string;
  readonly usage?: readonly [promptTokens: number, completionTokens: number, cost: number];
};

/** A child that can be the parent of others; as a parent it stands in for one of its runs. */
export type ChildRow = Parent & {
  readonly id: string;
  readonly treeId: string;
  readonly depth: number;
  readonly insert: string;
};

/** `insert` contains the statements; the first child of a tree also creates the tree. */
export function aChildRow(parent: Parent | ChildRow, over: ChildOver = {}): ChildRow {
  const id = unique('child').replaceAll('-', '').padEnd(16, 'x').slice(-16);
  const above = 'treeId' in parent ? parent : undefined;
  const { depth = (above?.depth ?? 0) + 1, treeId = above?.treeId ?? parent.runId } = over;
  const { state = 'running', createdAt = 1000, label, task = 'look something up', result } = over;
  const { status, told, stopAt, authority = 'owner', usage = [0, 0, 0] } = over;
  const startedAt = over.startedAt ?? (state === 'queued' ? undefined : createdAt);
  const endedAt = over.endedAt ?? (state === 'done' ? createdAt + 12_000 : undefined);
  const laneKey = `agent:main:sub:${depth}:${id}@${parent.laneKey}`;
  const row = {
    ...{ id, treeId, parentSessionId: parent.sessionId, parentLaneKey: parent.laneKey },
    ...{ parentRunId: parent.runId, parentCallId: 'call', laneKey, laneClass: `sub-${depth}` },
    ...{ agentId: 'main', depth, label, task, mode: 'announce', authority, state, result },
    ...{ status: state === 'done' ? (status ?? 'completed') : undefined, told, stopAt },
    ...{ promptTokens: usage[0], completionTokens: usage[1], cost: usage[2] },
    ...{ deadlineAt: createdAt + 3_600_000, createdAt, startedAt, endedAt },
  };
  const session = {
    ...{ id, key: laneKey, parentSessionId: parent.sessionId, agentId: 'main', messageCount: 0 },
    ...{ promptTokens: 0, completionTokens: 0, cost: 0 },
    ...{ createdAt, updatedAt: createdAt },
  };
  const tree = {
    ...{ id: treeId, sessionId: parent.sessionId, live: 1, total: 1, createdAt },
    deadlineAt: createdAt + 3_600_000,
  };
  const insert = [
    ...(above ? [] : [`${statement('trees', tree)} on conflict do nothing`]),
    statement('sessions', session),
    statement('children', row),
  ].join(';\n');
  return { id, treeId, depth, laneKey, sessionId: id, runId: unique('run'), insert };
}

function statement(table: string, row: Readonly<Record<string, string | number | undefined>>): string {
  const cells = Object.entries(row).filter(([, value]) => value !== undefined);
  const values = cells.map(([, value]) => (typeof value === 'number' ? value : `'${value}'`));
  return `insert into "${table}" (${cells.map(([name]) => `"${name}"`).join(', ')}) values (${values.join(', ')})`;
}
