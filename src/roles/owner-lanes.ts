import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Timelines } from '../channel-host/timeline.ts';
import type { Closers } from '../processes/closers.ts';
import type { OwnerLanes } from '../server/lane-routes.ts';
import type { Store } from '../store/base/command.ts';
import { setLaneMode } from '../store/lanes/set-lane-mode.ts';
import { readLiveLanes } from '../store/reads/read-live-lanes.ts';

export type OwnerLanesDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly closers: Closers;
  readonly timelines: Pick<Timelines, 'publish' | 'watchAll'>;
  /** Duration of leases on lanes, ms. */
  readonly leaseMs: number;
};

/** Lanes per page of the list. */
const listed = 25;

/** Provides the lanes for the page. A caller waiting for a change causes no reads until there is one. */
export function ownerLanes(deps: OwnerLanesDeps): OwnerLanes {
  const { store, timelines, leaseMs } = deps;
  const versions = countChanges(deps);
  return {
    list: async ({ after, since, waitMs }, signal) => {
      if (since !== undefined) await versions.waitAfter(since, waitMs, signal);
      // Taken before reading, so that a change in the meantime causes another read.
      const version = versions.current();
      return { ...(await store.read(readLiveLanes, { after, limit: listed, leaseMs })), version };
    },
    setMode: async (laneKey, mode) => {
      if (!(await store.write(setLaneMode, { laneKey, mode }))) return false;
      deps.log.info({ laneKey, mode }, 'lane.mode-changed');
      timelines.publish(laneKey, { kind: 'changed' });
      return true;
    },
  };
}

/**
 * Counts the lane changes that this process hears of. Starts at the current time, so no earlier process used the
 * number.
 */
function countChanges({ clock, timelines, closers }: OwnerLanesDeps) {
  let version = clock.now();
  const waiting = new Set<() => void>();
  const stopping = new AbortController();
  closers.add('owner lanes', async () => stopping.abort());
  const onChange = () => {
    version += 1;
    for (const wake of waiting) wake();
  };
  timelines.watchAll(onChange, stopping.signal);
  return {
    current: () => version,
    waitAfter: async (known: number, waitMs: number, signal: AbortSignal): Promise<void> => {
      if (known !== version) return;
      const changed = new AbortController();
      const wake = () => changed.abort();
      waiting.add(wake);
      await clock.wait(waitMs, AbortSignal.any([signal, stopping.signal, changed.signal]));
      waiting.delete(wake);
    },
  };
}
