import type { Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { lockAbove } from '../children/lock-lineage.ts';
import { readWaiting, type WaitingRow } from '../items/waiting-rows.ts';
import { type Lane, lockAndReadLanes } from '../rows/lane-row.ts';

/** A session's choices for its runs, and whether it has a message from anyone; notes don't count. */
type SessionFacts = {
  readonly model: string | null;
  readonly reasoning: string | null;
  readonly isBegun: boolean;
};

/** Everything a claim depends on, read under the lane's lock. */
export type ClaimFacts = {
  readonly lane: Lane;
  readonly waiting: readonly WaitingRow[];
  readonly session: SessionFacts | undefined;
  /** Remembered messages that no run has been shown, each as stored. */
  readonly context: readonly string[];
};

/** Locks the lane and its ancestors, and reads what its claim depends on; undefined if there is no such lane. */
export async function lockForClaim(tx: Tx, laneKey: string): Promise<ClaimFacts | undefined> {
  await lockAbove(tx, laneKey);
  return (await lockForClaims(tx, [laneKey])).get(laneKey);
}

/**
 * Does the same for lanes without ancestors. Everything is requested in one round trip, the locks first: PostgreSQL
 * answers in that order, so no row that is read can predate its lock.
 */
export async function lockForClaims(tx: Tx, laneKeys: readonly string[]): Promise<Map<string, ClaimFacts>> {
  const [lanes, ...facts] = await Promise.all([
    lockAndReadLanes(tx, laneKeys),
    ...laneKeys.map(async (key) => [key, await readFacts(tx, key)] as const),
  ]);
  const factsOf = new Map(facts);
  return new Map(
    lanes.flatMap((lane) => {
      const known = factsOf.get(lane.key);
      return known ? [[lane.key, { lane, ...known }]] : [];
    }),
  );
}

async function readFacts(tx: Tx, laneKey: string): Promise<Omit<ClaimFacts, 'lane'>> {
  const [waiting, rows] = await Promise.all([
    readWaiting(tx, laneKey),
    sessionWithContext.all(tx, { laneKey }),
  ]);
  const [session] = rows;
  return {
    waiting,
    session: session && { ...session, isBegun: Boolean(session.isBegun) },
    context: rows.flatMap(({ content }) => content ?? []),
  };
}

/** The lane's session, once for each message that no run has been shown, or once if there are none. */
const sessionWithContext = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db
    .selectFrom('lanes')
    .innerJoin('sessions', 'sessions.id', 'lanes.sessionId')
    .leftJoin('groupContext', (join) =>
      join.onRef('groupContext.laneKey', '=', 'lanes.key').on('groupContext.shownInRun', 'is', null),
    )
    .select(['sessions.model', 'sessions.reasoning', 'groupContext.content'])
    .select((eb) =>
      eb
        .exists(
          eb
            .selectFrom('transcript')
            .select('transcript.id')
            .whereRef('transcript.sessionId', '=', 'sessions.id')
            .where('transcript.role', '=', 'user'),
        )
        .as('isBegun'),
    )
    .where('lanes.key', '=', of.laneKey)
    .orderBy('groupContext.seq'),
);
