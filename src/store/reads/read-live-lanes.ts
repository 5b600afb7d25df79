/**
 * Lanes as the owner's page lists them, a page at a time: first those with a run or waiting items, then people's idle
 * ones, each group in key order. The cost of a page doesn't grow with the number of idle lanes.
 */
import { sql } from 'kysely';
import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenItem, isPeoplesLane } from '../base/index-predicates.ts';
import { type WaitingItem, waitingItemOf } from './read-waiting-items.ts';

/** A lane with its run and its waiting items. Times in ms. */
export type LiveLane = {
  readonly key: string;
  /** `main`: a conversation, whose mode and waiting items may be changed. All other classes are Parley's own. */
  readonly class: string;
  readonly agentId: string;
  readonly title: string | undefined;
  readonly mode: string;
  /**
   * `unheld`: its run is unfinished and has no holder. `due`: an item waits for the next free worker. `armed`: an item
   * waits for a later time.
   */
  readonly state: 'active' | 'parked' | 'unheld' | 'due' | 'armed' | 'idle';
  /** The process that holds the lane. */
  readonly holder?: {
    readonly id: string;
    /** Absent if the process no longer has a record. */
    readonly role?: string;
    /** Time since its lease was last renewed. */
    readonly leaseAgeMs: number;
  };
  readonly run?: {
    readonly id: string;
    readonly kind: string;
    readonly ageMs: number;
    /** While it is parked: the reason for waiting. */
    readonly waitsFor?: string;
    /** Somebody has asked it to stop. */
    readonly isStopping: boolean;
  };
  /** The next items, in the order in which they will be taken; at most `maxItems`. */
  readonly waiting: readonly (WaitingItem & { readonly id: string })[];
  readonly waitingCount: number;
};

/** The last lane of a page, after which the next page begins. */
export type LanePlace = { readonly group: 'busy' | 'idle'; readonly key: string };

/** A page of lanes. `next`: the place after which the next page begins. */
export type LanePage = {
  readonly lanes: readonly LiveLane[];
  /** Absent on the last page. */
  readonly next?: LanePlace;
};

/** Maximum number of waiting items shown per lane. */
const maxItems = 20;

export type LanesAsked = {
  readonly after?: LanePlace | undefined;
  readonly limit: number;
  /** Duration of the processes' leases, ms. */
  readonly leaseMs: number;
};

/** Reads the page that begins after a place, or the first page. */
export const readLiveLanes: StoreQuery<LanesAsked, LanePage> = {
  query: 'readLiveLanes',
  usesClock: true,
  run: async (tx, { after, limit, leaseMs }) => {
    // One lane more than a page shows whether there is a next page.
    const places = await findPlaces(tx, after, limit + 1);
    const shown = places.slice(0, limit);
    const last = places.length > limit ? shown.at(-1) : undefined;
    const keys = shown.map(({ key }) => key);
    const lanes = keys.length === 0 ? [] : await readLanes(tx, keys, leaseMs);
    return { lanes, ...(last && { next: last }) };
  },
};

async function findPlaces(
  tx: Tx,
  after: LanePlace | undefined,
  limit: number,
): Promise<readonly LanePlace[]> {
  const busy = after?.group === 'idle' ? [] : await busyKeys(tx, after?.key ?? '', limit);
  const idleAfter = after?.group === 'idle' ? after.key : '';
  const idle = busy.length < limit ? await idleKeys(tx, idleAfter, limit - busy.length) : [];
  return [
    ...busy.map((key) => ({ group: 'busy', key }) as const),
    ...idle.map((key) => ({ group: 'idle', key }) as const),
  ];
}

/**
 * Reads the keys of lanes with a run or with waiting items, each by its own index. SQLite would search all lanes in key
 * order for those with a run, so the query makes it find them first.
 */
async function busyKeys(tx: Tx, after: string, limit: number): Promise<readonly string[]> {
  const { rows } = await sql<{ readonly key: string }>`
    with "running" as materialized (select key from "lanes" where "runId" is not null)
    select key from (
      select key from "running" where key > ${after}
      union
      select key from (
        select distinct "laneKey" as key from "inbox"
        where ${isOpenItem()} and "laneKey" > ${after} order by "laneKey" limit ${limit}
      ) as "waiting"
    ) as "busy" order by key limit ${limit}`.execute(tx.db);
  return rows.map(({ key }) => key);
}

async function idleKeys(tx: Tx, after: string, limit: number): Promise<readonly string[]> {
  const rows = await tx.db
    .selectFrom('lanes')
    .select('key')
    .where(isPeoplesLane())
    .where('runId', 'is', null)
    .where('key', '>', after)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('inbox').select('id').whereRef('laneKey', '=', 'lanes.key').where(isOpenItem()))),
    )
    .orderBy('key')
    .limit(limit)
    .execute();
  return rows.map(({ key }) => key);
}

async function readLanes(tx: Tx, keys: readonly string[], leaseMs: number): Promise<readonly LiveLane[]> {
  const rows = await laneRows(tx, keys);
  const waiting = await readWaitingOf(tx, keys);
  const byKey = new Map(rows.map((row) => [row.key, row]));
  return keys.flatMap((key) => {
    const row = byKey.get(key);
    return row === undefined ? [] : [liveLaneOf(row, waiting.get(key) ?? nothing, { now: tx.now, leaseMs })];
  });
}

function laneRows(tx: Tx, keys: readonly string[]) {
  return tx.db
    .selectFrom('lanes')
    .leftJoin('sessions', 'sessions.id', 'lanes.sessionId')
    .leftJoin('runs', 'runs.id', 'lanes.runId')
    .leftJoin('boots', 'boots.id', 'lanes.holder')
    .select(['lanes.key', 'lanes.class', 'lanes.agentId', 'lanes.mode', 'lanes.holder', 'lanes.leaseUntil'])
    .select(['sessions.title', 'boots.role'])
    .select(['runs.id as runId', 'runs.kind', 'runs.state', 'runs.startedAt', 'runs.parkReason'])
    .select('runs.cancelReason')
    .where('lanes.key', 'in', keys)
    .execute();
}

type LaneRow = Awaited<ReturnType<typeof laneRows>>[number];

type LaneWaiting = {
  readonly count: number;
  readonly items: LiveLane['waiting'];
  /** When the first item is due. */
  readonly dueAt: number;
};

const nothing: LaneWaiting = { count: 0, items: [], dueAt: 0 };

type Times = { readonly now: number; readonly leaseMs: number };

function liveLaneOf(row: LaneRow, waiting: LaneWaiting, { now, leaseMs }: Times): LiveLane {
  const { key, class: laneClass, agentId, mode, holder, role, leaseUntil, runId } = row;
  const isHeld = holder !== null && leaseUntil > now;
  const leaseAgeMs = Math.max(0, leaseMs - (leaseUntil - now));
  return {
    ...{ key, class: laneClass, agentId, mode, title: row.title ?? undefined },
    state: stateOf(row, waiting, now),
    ...(isHeld && { holder: { id: holder, ...(role !== null && { role }), leaseAgeMs } }),
    ...(runId !== null && {
      run: {
        id: runId,
        kind: row.kind ?? 'turn',
        ageMs: Math.max(0, now - (row.startedAt ?? now)),
        ...(row.state === 'parked' && { waitsFor: row.parkReason ?? '' }),
        isStopping: row.cancelReason !== null,
      },
    }),
    waiting: waiting.items,
    waitingCount: waiting.count,
  };
}

function stateOf(
  { runId, state, leaseUntil }: LaneRow,
  waiting: LaneWaiting,
  now: number,
): LiveLane['state'] {
  if (runId !== null) return state === 'parked' ? 'parked' : leaseUntil > now ? 'active' : 'unheld';
  if (waiting.count === 0) return 'idle';
  return waiting.dueAt > now ? 'armed' : 'due';
}

/** Reads these lanes' waiting items, but only the contents of those that are shown. */
async function readWaitingOf(tx: Tx, keys: readonly string[]): Promise<ReadonlyMap<string, LaneWaiting>> {
  const places = await tx.db
    .selectFrom('inbox')
    .select(['id', 'laneKey'])
    .where('laneKey', 'in', keys)
    .where(isOpenItem())
    .orderBy('laneKey')
    .orderBy('rank')
    .orderBy('seq')
    .execute();
  const byLane = Map.groupBy(places, ({ laneKey }) => laneKey);
  const ids = [...byLane.values()].flatMap((open) => open.slice(0, maxItems).map(({ id }) => id));
  if (ids.length === 0) return new Map();
  const rows = await tx.db.selectFrom('inbox').selectAll().where('id', 'in', ids).execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return new Map(
    [...byLane].map(([laneKey, open]) => {
      const shown = open.slice(0, maxItems).flatMap(({ id }) => byId.get(id) ?? []);
      const items = shown.map((row) => ({ id: row.id, ...waitingItemOf(row, tx.now) }));
      return [laneKey, { count: open.length, items, dueAt: shown[0]?.dueAt ?? 0 }];
    }),
  );
}
