/**
 * Limits how many children of one depth run at once, over all processes. It counts live leases instead of reserving
 * places, so that a crash releases its place automatically.
 */
import { sql } from 'kysely';
import type { StoreQuery, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { ensureRow, locking, lockRows } from '../base/row-access.ts';
import type { Lane } from '../rows/lane.ts';
import { isChildLane } from './child.ts';

/** Says whether one more lane of the class may run. The class's row stays locked, so no other step counts meanwhile. */
export async function hasRoom(tx: Tx, lane: Lane, cap: number): Promise<boolean> {
  await ensureRow(tx, 'laneClasses', { name: lane.class });
  await lockedClass.one(tx, { name: lane.class });
  const { running } = await runningLanes.one(tx, { name: lane.class, except: lane.key, now: tx.now });
  return running < cap;
}

/**
 * Locks the classes of those lanes that are sub-agents'. Leases are therefore renewed before a count or after its
 * commit, never in between, so a lease that was counted as expired can't come back.
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

/** Says whether other lanes of a sub-agent's class are running, so that waiting items may be waiting for a place. */
export const isClassBusy: StoreQuery<{ readonly laneKey: string; readonly class: string }, boolean> = {
  query: 'isClassBusy',
  usesClock: true,
  run: async (tx, { laneKey, class: name }) =>
    isChildLane(laneKey) && (await runningLanes.one(tx, { name, except: laneKey, now: tx.now })).running > 0,
};

/** Returns those of the named sub-agent classes that have reached their cap of running lanes. */
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
 * Wakes the lane that has waited longest for a place in the class, when a sub-agent's lane releases its own. The sweep
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
