/**
 * How many children of one depth run at once, over all processes. Live leases are counted, none is reserved:
 * a crash gives its place back by itself.
 */
import { sql } from 'kysely';
import type { StoreQuery, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { ensureRow } from '../base/insert-row.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { locking, lockRows } from '../base/row-locks.ts';
import type { Lane } from '../rows/lane-row.ts';
import { isChildLane } from './child-rows.ts';

/** Whether one more lane of the class may run. The class's row stays locked, so nobody else counts meanwhile. */
export async function hasRoom(tx: Tx, lane: Lane, cap: number): Promise<boolean> {
  await ensureRow(tx, 'laneClasses', { name: lane.class });
  await lockedClass.one(tx, { name: lane.class });
  const { running } = await runningLanes.one(tx, { name: lane.class, except: lane.key, now: tx.now });
  return running < cap;
}

/**
 * Locks the classes of those lanes that are sub-agents'. Who renews leases comes after or before a count, never
 * between it and its commit: a lease that was counted as over can't come back.
 */
export async function lockClassesOf(tx: Tx, laneKeys: readonly string[]): Promise<void> {
  const keys = laneKeys.filter(isChildLane);
  if (tx.dialect !== 'postgres' || keys.length === 0) return;
  const names = tx.db.selectFrom('lanes').select('class').where('key', 'in', keys);
  await lockRows(
    tx,
    tx.db.selectFrom('laneClasses').select('name').where('name', 'in', names).orderBy('name'),
  );
}

const lockedClass = locking((db, of: QueryParams<{ name: string }>) =>
  db.selectFrom('laneClasses').select('name').where('name', '=', of.name),
);

const runningLanes = prepared((db, of: QueryParams<{ name: string; except: string; now: number }>) =>
  db
    .selectFrom('lanes')
    .select(sql<number>`count(*)`.as('running'))
    .where('runId', 'is not', null)
    .where('leaseUntil', '>', of.now)
    .where('holder', 'is not', null)
    .where('class', '=', of.name)
    .where('key', '<>', of.except),
);

/** Whether lanes of a sub-agents' class are at work: what waits in another of them may wait for a place. */
export const isClassBusy: StoreQuery<{ readonly laneKey: string; readonly class: string }, boolean> = {
  query: 'isClassBusy',
  usesClock: true,
  run: async (tx, { laneKey, class: name }) =>
    isChildLane(laneKey) && (await runningLanes.one(tx, { name, except: laneKey, now: tx.now })).running > 0,
};

/** Classes of sub-agents, of those named, in which as many lanes run as may. */
export async function readFullClasses(
  tx: Tx,
  names: Iterable<string>,
  caps: Readonly<Partial<Record<string, number>>>,
): Promise<ReadonlySet<string>> {
  const full = new Set<string>();
  for (const name of new Set(names)) {
    const cap = name.startsWith('sub-') ? caps[name] : undefined;
    if (cap === undefined) continue;
    const { running } = await runningLanes.one(tx, { name, except: '', now: tx.now });
    if (running >= cap) full.add(name);
  }
  return full;
}

/**
 * Wakes the lane that waits longest for a place in the class, as a sub-agent's lane gives its own back: the sweep
 * finds the others.
 */
export async function wakeNext(tx: Tx, lane: Lane, effects: Pick<Effects, 'wakes'>): Promise<void> {
  if (!isChildLane(lane.key)) return;
  const next = await nextInLine.first(tx, { name: lane.class, except: lane.key, now: tx.now });
  if (next) effects.wakes.push({ laneKey: next.laneKey, class: lane.class, delayMs: 0 });
}

const nextInLine = prepared((db, of: QueryParams<{ name: string; except: string; now: number }>) =>
  db
    .selectFrom('children')
    .innerJoin('lanes', 'lanes.key', 'children.laneKey')
    .select('children.laneKey')
    .where('children.state', 'in', ['queued', 'running'])
    .where('children.endedAt', 'is', null)
    .where('children.laneClass', '=', of.name)
    .where('children.laneKey', '<>', of.except)
    .where('lanes.leaseUntil', '<=', of.now)
    .where((eb) => {
      const waiting = eb
        .selectFrom('inbox')
        .select('inbox.id')
        .whereRef('inbox.laneKey', '=', 'children.laneKey')
        .where(isOpenItem());
      return eb.or([eb('lanes.runId', 'is not', null), eb.exists(waiting)]);
    })
    .orderBy('children.createdAt')
    .limit(1),
);
