import type { OnWait } from '#contracts/model.ts';
import { routeOf } from '#contracts/route.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { storeNotice } from '../store/lanes/commit-turn.ts';
import type { Notices } from '../texts/notices.ts';

export type BusyNoticeDeps = {
  readonly store: Store;
  readonly notices: Notices;
  start(effects: Effects): void;
};

/** After this long of waiting for the model, the person is told once. */
const busyNoticeMs = 15_000;

/**
 * Creates what counts how long a run has waited between the tries of its model calls, ms, and tells its person once.
 * Call it before each wait. Rejects with what the store throws.
 */
export function createBusyNotice(
  { store, notices, start }: BusyNoticeDeps,
  { runId, laneKey, epoch, target }: ClaimedRun,
): OnWait {
  const route = routeOf(target);
  let waitedMs = 0;
  return async (waitMs) => {
    const before = waitedMs;
    waitedMs += waitMs;
    if (before > busyNoticeMs || waitedMs <= busyNoticeMs || !route) return;
    const content = { kind: 'text', text: { text: notices.modelBusy, spans: [] } } as const;
    start(await store.write(storeNotice, { laneKey, epoch, runId, key: `${runId}:busy`, route, content }));
  };
}
