import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import {
  type RunOutOfBudget,
  readRoom,
  resumeWithRoom,
  type WaitPlace,
} from '../store/waits/budget-waits.ts';

/** Resumes runs that wait for room in a budget. */
export interface RoomWaker {
  /** Looks for runs that have room now. Never waits, never throws; the sweep finds those that it misses. */
  look(): void;
  /** Lets these runs continue. */
  resume(runs: readonly RunOutOfBudget[]): void;
}

/**
 * Creates the waker. A call that returns its reservation calls `look`, so that the next run in the queue starts at once
 * instead of at the next sweep. Calls that end while it looks share one further look.
 */
export function createRoomWaker(deps: {
  readonly store: Store;
  readonly log: Log;
  start(effects: Effects): void;
}): RoomWaker {
  const { store, log, start } = deps;
  let isLooking = false;
  let isAsked = false;
  const resume = (runs: readonly RunOutOfBudget[]) => {
    for (const run of runs)
      store
        .write(resumeWithRoom, run)
        .then(start)
        .catch((error: unknown) => log.warn({ ...run, error }, 'sweep.run-not-resumed'));
  };
  const lookOnce = async () => {
    let after: WaitPlace | undefined;
    do {
      const { ready, next } = await store.read(readRoom, { after });
      resume(ready);
      after = next;
    } while (after !== undefined);
  };
  const look = async () => {
    isLooking = true;
    try {
      while (isAsked) {
        isAsked = false;
        await lookOnce();
      }
    } catch (error) {
      log.debug({ error }, 'room.not-read');
    } finally {
      isLooking = false;
    }
  };
  return {
    look: () => {
      isAsked = true;
      if (!isLooking) void look();
    },
    resume,
  };
}
