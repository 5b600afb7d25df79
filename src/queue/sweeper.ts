import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Store } from '../store/command.ts';
import { closeBundles, readSweep, type Sweep } from '../store/lanes/sweep.ts';
import type { Wakes } from './wakes.ts';

export type SweeperDeps = {
  readonly store: Store;
  readonly wakes: Wakes;
  readonly clock: Clock;
  readonly log: Log;
  readonly contextLimit: number;
  deliver(conversationKey: string): void;
  fetch(inboxId: string): void;
  /** Something has waited in a lane for so long and nobody works on it; said once, until it is over. */
  onAlarm(laneKey: string, waitedMs: number): void;
  onAlarmOver(laneKey: string): void;
};

export interface Sweeper {
  stop(): Promise<void>;
}

const intervalMs = 1_000;
/** A lane that has waited this long with nobody working on it is an alarm. */
const alarmAfterMs = 10_000;

/** Step 11: finds everything that should be moving and is not. Enough for correctness on its own. */
export function startSweeper(deps: SweeperDeps): Sweeper {
  const { clock, log } = deps;
  const stopping = new AbortController();
  const alarmed = new Set<string>();
  // What waited while no process was there is this one's business from its start on.
  const startedAt = clock.now();
  let failures = 0;
  const loop = async () => {
    while (!stopping.signal.aborted) {
      try {
        setInMotion(deps, await deps.store.read(readSweep, {}), { alarmed, startedAt });
        if (failures > 0) log.info({ failures }, 'sweep.recovered');
        failures = 0;
      } catch (error) {
        if (failures === 0) log.error({ error }, 'sweep.failed');
        failures += 1;
      }
      await clock.wait(intervalMs, stopping.signal);
    }
  };
  const running = loop();
  return {
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

type Watch = { readonly alarmed: Set<string>; readonly startedAt: number };

function setInMotion(deps: SweeperDeps, sweep: Sweep, watch: Watch): void {
  const { store, wakes, log, contextLimit } = deps;
  for (const lane of sweep.lanes) wakes.wake({ ...lane, delayMs: 0 });
  for (const conversationKey of sweep.conversations) deps.deliver(conversationKey);
  for (const inboxId of sweep.fetches) deps.fetch(inboxId);
  if (sweep.expiredBundles.length > 0) {
    store
      .write(closeBundles, { laneKeys: sweep.expiredBundles, limit: contextLimit })
      .catch((error: unknown) => log.warn({ error }, 'sweep.bundles-failed'));
  }
  raiseAlarms(deps, sweep, watch);
}

function raiseAlarms(deps: SweeperDeps, sweep: Sweep, { alarmed, startedAt }: Watch): void {
  const { log, clock, onAlarm, onAlarmOver } = deps;
  const now = clock.now();
  const waitedMs = ({ waitingSince }: Sweep['lanes'][number]) => now - Math.max(waitingSince, startedAt);
  const late = sweep.lanes.filter((lane) => waitedMs(lane) > alarmAfterMs);
  for (const lane of late) {
    if (alarmed.has(lane.laneKey)) continue;
    alarmed.add(lane.laneKey);
    log.error({ laneKey: lane.laneKey, waitedMs: waitedMs(lane) }, 'lane.alarm');
    onAlarm(lane.laneKey, waitedMs(lane));
  }
  const stillLate = new Set(late.map((lane) => lane.laneKey));
  for (const laneKey of alarmed) {
    if (stillLate.has(laneKey)) continue;
    alarmed.delete(laneKey);
    onAlarmOver(laneKey);
  }
}
