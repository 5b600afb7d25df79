import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { ModelRequest } from '../../src/contracts/model.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { createEffectDispatcher } from '../../src/queue/effect-dispatcher.ts';
import { type LaneWorkers, startLaneWorkers } from '../../src/queue/lane-workers.ts';
import { createWakes } from '../../src/queue/wakes.ts';
import { openRedis, type RedisKeys } from '../../src/redis/connection.ts';
import { createActiveRuns } from '../../src/runs/active-runs.ts';
import { createLaneDriver } from '../../src/runs/drive-lane.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import type { Store } from '../../src/store/base/command.ts';
import { acceptBatch } from '../../src/store/intake/accept-batch.ts';
import type { Proposal } from '../../src/store/intake/proposal.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { claimAccount } from '../../src/store/processes/accounts.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { completes } from '../agent/support/scripted-model.ts';
import { runDeps } from '../runs/run-builders.ts';
import { demoOnly, unique } from '../store/builders.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

/** The stages from intake to the stored answer, wired as in one process. There is no sweeper. */
export type LaneProcess = {
  /** Stores a message as intake does: if a slot is free here, its lane is claimed in the same commit. */
  accept(proposal: Proposal): Promise<Arrived>;
  close(): Promise<void>;
};

/** What an arrival met: an active run, a lane that this process works now, or a lane that had to be woken. */
export type Arrived = 'joined' | 'begun' | 'woken' | 'other';

export type LaneProcessOptions = {
  readonly store: Store;
  readonly redisSocket: string;
  readonly keys: RedisKeys;
  /** Lanes worked at the same time; 0 = it only takes messages in. */
  readonly slots: number;
  /** What the model does before it answers `ok`. */
  think(request: ModelRequest, signal: AbortSignal): Promise<void>;
};

/** So long that no expiring lease repairs anything. */
const leaseMs = 120_000;

export async function openLaneProcess(options: LaneProcessOptions): Promise<LaneProcess> {
  const { store, keys, slots, think } = options;
  const holder = unique('boot');
  const redis = openRedis({ kind: 'socket', path: options.redisSocket }, silentLog);
  await redis.ready(AbortSignal.timeout(patienceMs));
  const wakes = createWakes({ redis, keys, log: silentLog });
  const active = createActiveRuns({
    ...{ store, holder, clock: systemClock, log: silentLog },
    ...{ leaseMs, renewMs: 1_000 },
  });
  const motion = createEffectDispatcher(noProbe);
  const workers = slots > 0 ? startWorkers() : undefined;
  motion.connect({
    cancel: active.cancel,
    wake: wakes.wake,
    deliver: () => undefined,
    fetch: () => undefined,
    changed: () => undefined,
    overflowed: () => undefined,
    gaveUp: () => undefined,
    childEnded: () => undefined,
    taskChanged: () => undefined,
    sessionEnded: () => undefined,
    reserve: (laneClass, most) => workers?.reserve(laneClass, most),
  });
  const accounts = await Promise.all(Array.from({ length: 16 }, () => holdAccount(store, holder)));
  let turn = 0;

  function startWorkers(): LaneWorkers {
    const model = {
      requests: [],
      stream: async function* (request: ModelRequest, signal: AbortSignal) {
        await think(request, signal);
        yield { type: 'content_start' } as const;
        yield { type: 'content_delta', text: 'ok' } as const;
        yield { type: 'content_stop' } as const;
        yield completes('end_turn');
      },
    };
    const some = runDeps(store, { active, model, tools: [] });
    // A run that is steered repeatedly takes long on a loaded machine, and none of its limits may end it.
    const limits = { ...some.settings.limits, runTimeoutMs: 3_600_000, turns: 10_000 };
    const deps = { ...some, settings: { ...some.settings, limits }, start: motion.dispatch };
    const driver = createLaneDriver({
      ...{ store, holder, clock: systemClock, log: silentLog, probe: noProbe, wakes },
      ...{
        texts: textsFor('en'),
        leaseMs,
        maxAttempts: 3,
        redact: (text) => text,
        turnModels: demoOnly,
        maxRuns: 5,
        maxHoldMs: 60_000,
      },
      framing: deps.framing,
      start: motion.dispatch,
      execute: (run, how) => executeRun(deps, run, how),
    });
    return startLaneWorkers({ redis, keys, log: silentLog, concurrency: { main: slots }, driver });
  }

  return {
    accept: async (proposal) => {
      const receiving = accounts[turn++ % accounts.length] ?? neverHeld;
      const reserved = motion.reserve('main', 1);
      const claims = reserved && { claims: reserved.terms };
      let runs: readonly ClaimedRun[] = [];
      try {
        const accepted = await store.write(acceptBatch, {
          ...{ ...receiving, holder, proposals: [proposal] },
          ...claims,
        });
        runs = accepted.runs;
        motion.dispatch(accepted.effects);
        if (accepted.effects.arrivals.length > 0) return 'joined';
        if (runs.length > 0) return 'begun';
        return accepted.effects.wakes.length > 0 ? 'woken' : 'other';
      } finally {
        reserved?.begin(runs);
      }
    },
    close: async () => {
      await workers?.close();
      await active.close();
      await wakes.close();
      redis.close();
    },
  };
}

const neverHeld = { account: 'nobody', epoch: 0 };

/** Claims an account; with only one, messages would be taken in one after the other. */
async function holdAccount(store: Store, holder: string) {
  const account = unique('test/account');
  const lease = await store.write(claimAccount, { account, holder, leaseMs: 3_600_000 });
  if (lease.kind !== 'held') throw new Error('the account is busy');
  return { account, epoch: lease.epoch };
}
