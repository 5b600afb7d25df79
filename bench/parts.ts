import { measureBudgets } from './budgets.ts';
import { measureBurst } from './burst.ts';
import { measureChildren, measureCrowd, measureFinish } from './children.ts';
import { measureCrash } from './crash.ts';
import type { Figure } from './figure.ts';
import { findPostgres } from './lanes/cluster.ts';
import { measureAdded, measureLatency } from './latency.ts';
import { type MemoryOptions, measureMemory } from './memory.ts';
import { type NetworkName, networkNames, titleOf } from './network.ts';
import { withBoth, withParley } from './pair.ts';
import { measureRecovery } from './recovery.ts';
import { measureStart, measureStartOfAll } from './start.ts';
import { measureSteer } from './steer.ts';

export type Pace = {
  readonly isQuick: boolean;
  readonly rounds: number;
  readonly repeats: number;
  readonly memory: Pick<MemoryOptions, 'chats' | 'restMs'>;
};

export const fullPace: Pace = {
  isQuick: false,
  rounds: 60,
  repeats: 5,
  memory: { chats: 1000, restMs: 5000 },
};
export const quickPace: Pace = {
  isQuick: true,
  rounds: 15,
  repeats: 1,
  memory: { chats: 200, restMs: 1500 },
};

/** Measurements by name. Figures that name no network are Telegram's. */
export const parts: Readonly<Record<string, (pace: Pace) => Promise<readonly Figure[]>>> = {
  latency: ({ rounds }) => withBoth('telegram', (both) => measureLatency(both, rounds)),
  added: ({ rounds }) => withBoth('telegram', (both) => measureAdded(both, rounds)),
  burst: ({ repeats }) => withBoth('telegram', (both) => measureBurst(both, { repeats, name: 'burst' })),
  followup: ({ repeats }) =>
    withBoth(
      'telegram',
      (both) => measureBurst(both, { repeats, name: 'burst, each message its own turn' }),
      {
        settings: { queue: { dm: { mode: 'followup' } } },
      },
    ),
  start: ({ repeats }) => measureStart(repeats),
  memory: ({ memory }) =>
    memoryOn('telegram', { ...memory, target: { atRest: '≤ 145 MB', grown: '≤ 120 MB' } }),
  steer: ({ rounds }) => withParley(['telegram'], (parley) => measureSteer(parley, Math.ceil(rounds / 2))),
  children: async ({ rounds, repeats, isQuick }) => [
    ...(await withParley(['telegram'], (parley) => measureChildren(parley, rounds))),
    ...(await measureCrowd(repeats)),
    ...(await measureFinish(isQuick ? 50 : 300)),
  ],
  budgets: async ({ isQuick }) => {
    const cluster = await findPostgres();
    try {
      return await measureBudgets(cluster?.url, isQuick ? 5 : 30);
    } finally {
      await cluster?.stop();
    }
  },
  crash: () => measureCrash(),
  recovery: ({ repeats }) => measureRecovery(Math.min(repeats, 3)),
  discord: (pace) => measureNetwork('discord', pace),
  signal: (pace) => measureNetwork('signal', pace),
  networks: async ({ repeats, memory }) => {
    const target = { atRest: '≤ 190 MB', grown: '' };
    const atRest = await withParley(networkNames, (parley) =>
      measureMemory({ parley }, { ...memory, target }),
    );
    return named('all networks', [...(await measureStartOfAll(repeats)), ...atRest]);
  },
};

async function measureNetwork(name: NetworkName, pace: Pace): Promise<readonly Figure[]> {
  const { rounds, repeats, memory } = pace;
  const figures = await withBoth(name, async (both) => [
    ...(await measureLatency(both, rounds)),
    ...(await measureBurst(both, { repeats: Math.min(repeats, 2), name: 'burst' })),
  ]);
  const target = { atRest: '', grown: '' };
  return named(titleOf[name], [...figures.map(measured), ...(await memoryOn(name, { ...memory, target }))]);
}

/** The targets are Telegram's. */
function measured(figure: Figure): Figure {
  return { ...figure, target: '' };
}

function memoryOn(name: NetworkName, options: MemoryOptions): Promise<readonly Figure[]> {
  return withBoth(name, ([floor, parley]) => measureMemory({ floor, parley }, options));
}

function named(title: string, figures: readonly Figure[]): readonly Figure[] {
  return figures.map((figure) => ({ ...figure, name: `${title}: ${figure.name}` }));
}
