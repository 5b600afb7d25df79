import type { RunTarget } from '#contracts/route.ts';
import type { StoreQuery } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';

/** State of a lane's work, in whichever process it runs. */
export type LaneWork = {
  /** Whether there is such a lane. */
  readonly isKnown: boolean;
  /** Absent if no run is unfinished. */
  readonly run?: {
    readonly runId: string;
    readonly target: RunTarget;
    readonly authority: string;
    readonly isParked: boolean;
    /** The run has a holder whose lease hasn't expired. */
    readonly isHeld: boolean;
  };
  readonly hasWaiting: boolean;
};

/** Reads a lane's unfinished run and whether any item is waiting. */
export const readLaneWork: StoreQuery<{ readonly laneKey: string }, LaneWork> = {
  query: 'readLaneWork',
  usesClock: true,
  run: async (tx, { laneKey }) => {
    const run = await tx.db
      .selectFrom('lanes')
      .leftJoin('runs', 'runs.id', 'lanes.runId')
      .select(['runs.id', 'runs.route', 'runs.authority', 'runs.state', 'lanes.leaseUntil'])
      .where('lanes.key', '=', laneKey)
      .executeTakeFirst();
    const waiting = await tx.db
      .selectFrom('inbox')
      .select('id')
      .where('laneKey', '=', laneKey)
      .where(isOpenItem())
      .where('state', '=', 'waiting')
      .limit(1)
      .executeTakeFirst();
    return {
      isKnown: run !== undefined,
      ...(run?.id != null && {
        run: {
          runId: run.id,
          target: json.target(run.route),
          authority: run.authority ?? '',
          isParked: run.state === 'parked',
          isHeld: run.state !== 'parked' && run.leaseUntil > tx.now,
        },
      }),
      hasWaiting: waiting !== undefined,
    };
  },
};

/** Says whether any lane has an unfinished run or a waiting item. */
export const readIsBusy: StoreQuery<Record<string, never>, boolean> = {
  query: 'readIsBusy',
  run: async (tx) => {
    const waiting = await tx.db
      .selectFrom('inbox')
      .select('id')
      .where(isOpenItem())
      .where('state', '=', 'waiting')
      .limit(1)
      .executeTakeFirst();
    if (waiting) return true;
    const run = await tx.db
      .selectFrom('lanes')
      .select('key')
      .where('runId', 'is not', null)
      .limit(1)
      .executeTakeFirst();
    return run !== undefined;
  },
};
