import type { MeasuredReport, Pace } from '../parts.ts';
import type { Sheet } from '../sheet.ts';
import { measureBareLane } from './bare-lane.ts';
import { findPostgres } from './cluster.ts';
import type { Ground } from './farm.ts';
import { measureHistory } from './history.ts';
import { measureRestart } from './restart.ts';
import { measureSizes } from './sizes.ts';
import { measureSteps } from './steps.ts';
import { measureSustained } from './sustained.ts';
import { measureThroughput } from './throughput.ts';

const parts: Readonly<Record<string, (pace: Pace) => Promise<readonly Sheet[]>>> = {
  steps: async ({ isQuick }) => {
    const cluster = await findPostgres();
    try {
      return [
        await measureSteps(cluster?.url, isQuick ? 300 : 3_000),
        await measureBareLane(isQuick ? 5_000 : 20_000),
        await measureHistory(isQuick ? [0, 1_000] : [0, 100, 1_000, 10_000]),
      ];
    } finally {
      await cluster?.stop();
    }
  },
  sizes: ({ isQuick }) =>
    onEach(async (kind, postgres) => [await measureSizes(kind, postgres, isQuick ? 2_000 : 20_000)]),
  restart: ({ isQuick }) =>
    onEach(async (kind, postgres) => {
      const waiting = isQuick ? [1_000, 10_000] : [10_000, 100_000];
      return [await measureRestart(kind, postgres, { waiting, longestMs: isQuick ? 5_000 : 40_000 })];
    }),
  sustained: ({ isQuick }) =>
    onEach(async (kind, postgres) => [
      await measureSustained(kind, postgres, { ...timesFor(isQuick), workers: 1 }),
    ]),
  offered: async ({ isQuick }) => {
    const cluster = await findPostgres();
    if (!cluster) return [];
    try {
      return [await measureSustained('PostgreSQL', cluster.url, { ...timesFor(isQuick), workers: 2 })];
    } finally {
      await cluster.stop();
    }
  },
  lanes: (pace) =>
    onEach(async (kind, postgres) => {
      const few = pace.isQuick ? [10, 1_000] : [10, 1_000, 100_000];
      const all = pace.isQuick ? few : [10, 100, 1_000, 10_000, 100_000];
      const lanesOf = new Map([0, 1, 2, 4].map((workers) => [workers, workers === 0 ? all : few]));
      const times = pace.isQuick ? { fullMs: 1_500, pacedMs: 1_000 } : { fullMs: 4_000, pacedMs: 2_000 };
      return [await measureThroughput(kind, postgres, { lanesOf, ...times })];
    }),
};

function timesFor(isQuick: boolean): { readonly durationMs: number; readonly everyMs: number } {
  return isQuick ? { durationMs: 20_000, everyMs: 5_000 } : { durationMs: 600_000, everyMs: 60_000 };
}

/** Measurements of the lanes alone. They take long, so a run without names skips them. */
export const lanesReport: MeasuredReport = {
  name: 'lanes.md',
  opening: [
    '# Lanes, measured',
    '',
    'These benchmarks run the real stages: store with full fsync, queue with BullMQ on Redis, lane workers, runs with',
    'recorder and loop, outbox. Everything that isn’t Parley is replaced by a model that answers immediately and a',
    'network inside the process, so the figures show what a message itself costs. Every message is its own turn',
    '(`followup`), is awaited, and must be answered once and in order, or the measurement ends with an error. The',
    'figures themselves are not asserted.',
  ],
  parts: Object.keys(parts),
  measure: async (part, pace) => (await parts[part]?.(pace)) ?? [],
};

/** Measures on SQLite, and on PostgreSQL if there is one. */
async function onEach(
  measure: (kind: Ground['kind'], postgres: string | undefined) => Promise<readonly Sheet[]>,
): Promise<readonly Sheet[]> {
  const onSqlite = await measure('SQLite', undefined);
  const cluster = await findPostgres();
  if (!cluster) return onSqlite;
  try {
    return [...onSqlite, ...(await measure('PostgreSQL', cluster.url))];
  } finally {
    await cluster.stop();
  }
}
