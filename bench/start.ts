import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure } from './figure.ts';
import { botSays, type NetworkName, networkNames, titleOf } from './network.ts';
import { type Bench, withParley } from './pair.ts';
import { type AtLeastOne, startPlatforms } from './platforms.ts';
import { residentMb } from './process-figures.ts';
import { median } from './statistics.ts';
import { startParley } from './subject.ts';

/** Time until a started process is at rest, ms. */
const restMs = 5_000;

/** (5) Measures the start of the process → its first reply, with an update waiting and an empty data folder. */
export async function measureStart(repeats: number): Promise<readonly Figure[]> {
  await refuseStaleDependencies();
  const start = async (isByNpm: boolean) => (await firstReplies(['telegram'], isByNpm)).telegram;
  // One extra start beforehand, because it may be the first after an installation or a change.
  await start(true);
  const byNpm: number[] = [];
  const bare: number[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    byNpm.push(await start(true));
    bare.push(await start(false));
  }
  return [
    { name: 'npm start → first reply', unit: 'ms', parley: median(byNpm), target: '≤ 1000 ms' },
    { name: 'the same without npm', unit: 'ms', parley: median(bare), target: '' },
  ];
}

/** Measures the same with all networks on, without npm. */
export async function measureStartOfAll(repeats: number): Promise<readonly Figure[]> {
  await firstReplies(networkNames, false);
  const found: Replies[] = [];
  for (let repeat = 0; repeat < repeats; repeat++) found.push(await firstReplies(networkNames, false));
  return networkNames.map((name) => ({
    name: `start → first reply on ${titleOf[name]}`,
    unit: 'ms',
    parley: median(found.map((one) => one[name])),
    target: '',
  }));
}

/**
 * Compares a configuration with an unused OpenAI model (`parley`) to one without (`floor`): the SDK should only be
 * loaded with the first request.
 */
export async function measureUnusedOpenAi(repeats: number): Promise<readonly Figure[]> {
  const unused = {
    providers: { house: { baseUrl: 'http://127.0.0.1:9/v1' } },
    models: { spare: { provider: 'house', id: 'qwen3' } },
  };
  await startedWith({});
  const [without, within]: [Started[], Started[]] = [[], []];
  // Alternating, so that both see the machine in the same state.
  for (let repeat = 0; repeat < repeats; repeat++) {
    without.push(await startedWith({}));
    within.push(await startedWith(unused));
  }
  const row = (name: string, unit: Figure['unit'], of: (started: Started) => number): Figure => ({
    ...{ name, unit, target: 'unchanged' },
    floor: median(without.map(of)),
    parley: median(within.map(of)),
  });
  return [
    row('an unused OpenAI model: start → ready', 'ms', ({ readyMs }) => readyMs),
    row('the same: memory at rest', 'MB', ({ memoryMb }) => memoryMb),
  ];
}

type Started = { readonly readyMs: number; readonly memoryMb: number };

function startedWith(settings: Readonly<Record<string, unknown>>): Promise<Started> {
  const measure = async ({ subject }: Bench) => {
    await sleep(restMs);
    return { readyMs: subject.readyAt - subject.startedAt, memoryMb: residentMb(subject.pid) };
  };
  return withParley(['telegram'], measure, { settings });
}

/** Asserts that the dependencies are current: `npm start` would reinstall them under everything else running here. */
async function refuseStaleDependencies(): Promise<void> {
  const root = join(import.meta.dirname, '..');
  // It is plain JavaScript for any Node.js, without types.
  const { areDependenciesCurrent } = (await import(join(root, 'scripts/bootstrap.mjs'))) as {
    areDependenciesCurrent(root: string): boolean;
  };
  if (!areDependenciesCurrent(root))
    throw new Error('node_modules is not what package-lock.json says; run "npm ci" first');
}

type Replies = Readonly<Record<NetworkName, number>>;

/** Returns milliseconds from the start. On each network somebody writes as soon as the bot is reachable. */
async function firstReplies(names: AtLeastOne<NetworkName>, isByNpm: boolean): Promise<Replies> {
  const platforms = await startPlatforms(...names);
  try {
    const replies = platforms.networks.map(async (network) => {
      await network.untilReachable();
      network.say(77, 'anybody there?');
      return [network.name, (await botSays(network, 77, 'anybody there?')).at] as const;
    });
    const subject = await startParley(platforms, { isByNpm });
    try {
      const since = (await Promise.all(replies)).map(([name, at]) => [name, at - subject.startedAt]);
      // All the expected replies have arrived.
      return Object.fromEntries(since) as Replies;
    } finally {
      await subject.end();
    }
  } finally {
    await platforms.close();
  }
}
