import type { Tx } from '../base/command.ts';
import { oneOf } from '../base/one-of.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { lockAbove } from '../children/lock-lineage.ts';
import { readWaiting, type WaitingRow } from '../items/waiting-rows.ts';
import { type Lane, lockAndReadLanes } from '../rows/lane-row.ts';
import { readUnshown } from './take-rows.ts';

/** A session's choice for its runs, and the position of the first message that it has of anybody; notes are none. */
type SessionFacts = {
  readonly model: string | null;
  readonly reasoning: string | null;
  readonly firstMessageAt: number | null;
};

/** All that a claim goes by, read behind the lane's lock. */
export type ClaimFacts = {
  readonly lane: Lane;
  readonly waiting: readonly WaitingRow[];
  readonly session: SessionFacts | undefined;
  /** Remembered messages that no run was shown, each as it is stored. */
  readonly context: readonly string[];
};

/** Locks the lane with those above it, and reads what its claim goes by; undefined when there is no such lane. */
export async function lockForClaim(tx: Tx, laneKey: string): Promise<ClaimFacts | undefined> {
  await lockAbove(tx, laneKey);
  return (await lockForClaims(tx, [laneKey])).get(laneKey);
}

/**
 * The same for lanes that have none above them. All is asked for in one go, the locks first: PostgreSQL answers in
 * this order, so nothing that is read can be older than they are.
 */
export async function lockForClaims(tx: Tx, laneKeys: readonly string[]): Promise<Map<string, ClaimFacts>> {
  const keys = JSON.stringify(laneKeys);
  const [lanes, sessions, unshown, waiting] = await Promise.all([
    lockAndReadLanes(tx, laneKeys),
    sessionsOf.all(tx, { keys }),
    readUnshown(tx, laneKeys),
    Promise.all(laneKeys.map(async (key) => [key, await readWaiting(tx, key)] as const)),
  ]);
  const waitingIn = new Map(waiting);
  return new Map(
    lanes.map((lane) => [
      lane.key,
      {
        lane,
        waiting: waitingIn.get(lane.key) ?? [],
        session: sessions.find(({ laneKey }) => laneKey === lane.key),
        context: unshown.flatMap(({ laneKey, content }) => (laneKey === lane.key ? [content] : [])),
      },
    ]),
  );
}

const sessionsOf = prepared((db, of: QueryParams<{ keys: string }>, dialect) =>
  db
    .selectFrom('lanes')
    .innerJoin('sessions', 'sessions.id', 'lanes.sessionId')
    .select(['lanes.key as laneKey', 'sessions.model', 'sessions.reasoning'])
    .select((eb) =>
      eb
        .selectFrom('transcript')
        .whereRef('transcript.sessionId', '=', 'sessions.id')
        .where('transcript.role', '=', 'user')
        .select('transcript.position')
        .orderBy('transcript.position')
        .limit(1)
        .$asScalar()
        .as('firstMessageAt'),
    )
    .where('lanes.key', ...oneOf(of.keys, dialect)),
);
