import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Store } from '../src/store/base/command.ts';
import type { ClaimedRun } from '../src/store/lanes/claim-lane.ts';
import type { BudgetLimit } from '../src/store/money/budget.ts';
import { callIdOf, reserveCall } from '../src/store/money/model-call.ts';
import { aLane, aMessage, aWorker } from '../test/store/builders.ts';
import { rate } from '../test/store/call-builders.ts';
import { openStore } from '../test/support/open-store.ts';
import { now } from './clock.ts';
import type { Figure } from './figure.ts';
import { createPostgres } from './lanes/database.ts';
import { median } from './statistics.ts';

const atOnce = 200;
const warmUps = 3;

/**
 * Reserves 200 concurrent calls in one gateway budget, compared with 200 calls whose rows are opened without a budget,
 * and returns the time per call. `postgres`: address of a cluster; without one only SQLite is measured.
 */
export async function measureBudgets(
  postgres: string | undefined,
  rounds: number,
): Promise<readonly Figure[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  const sqlite = await openStore({ kind: 'sqlite', dataDir });
  const figures: Figure[] = [];
  try {
    figures.push(await measured('SQLite', sqlite, rounds));
  } finally {
    await sqlite.close();
    await rm(dataDir, { recursive: true, force: true });
  }
  if (postgres === undefined) return figures;
  const database = await createPostgres(postgres);
  const store = await openStore({ kind: 'postgres', url: database.url ?? '' });
  try {
    figures.push(await measured('PostgreSQL', store, rounds));
  } finally {
    await store.close();
    await database.drop();
  }
  return figures;
}

async function measured(name: string, store: Store, rounds: number): Promise<Figure> {
  const runs = await begunRuns(store);
  const gateway: BudgetLimit = { scope: 'gateway', key: 'gateway:2026-11-22', limit: 1e12 };
  const [without, within]: [number[], number[]] = [[], []];
  // Alternating, so that both see the machine in the same state.
  for (let round = 0; round < 2 * (warmUps + rounds); round++) {
    const isWithin = round % 2 === 1;
    const ms = await reserveAll(store, runs, { n: round + 2, limits: isWithin ? [gateway] : [] });
    if (round >= 2 * warmUps) (isWithin ? within : without).push(ms / atOnce);
  }
  return {
    name: `${name}: opening a model call, ${atOnce} at once, with one budget and with none`,
    unit: 'ms',
    floor: median(without),
    parley: median(within),
    target: '≤ 0.5 ms more',
  };
}

async function begunRuns(store: Store): Promise<readonly ClaimedRun[]> {
  const worker = aWorker(store);
  const names = Array.from({ length: atOnce }, (_, index) => `c${index}`);
  await worker.accept(...names.map((conversation) => aMessage({ conversation, text: 'hello' })));
  return Promise.all(names.map((conversation) => worker.claimRun(aLane(conversation).key, 600_000)));
}

/** Opens the n-th call of each run. Returns how long all of them took, ms. */
async function reserveAll(
  store: Store,
  runs: readonly ClaimedRun[],
  { n, limits }: { readonly n: number; readonly limits: readonly BudgetLimit[] },
): Promise<number> {
  const began = now();
  await Promise.all(
    runs.map(({ laneKey, epoch, runId, sessionId }) => {
      const id = callIdOf(epoch, n);
      const call = { id, runId, sessionId, purpose: 'turn', rate, reserved: 900 } as const;
      return store.write(reserveCall, { laneKey, epoch, runId, call, limits, ends: [] });
    }),
  );
  return now() - began;
}
