import { measureBudgets } from './budgets.ts';
import { measureBurst } from './burst.ts';
import { measureCache } from './cache.ts';
import { measureChildren, measureCrowd, measureFinish } from './children.ts';
import { measureContext } from './context.ts';
import { measureCrash } from './crash.ts';
import { measureFeed, measureFeedMemory } from './feed.ts';
import { type Figure, figureRows } from './figure.ts';
import { measureFirstHour } from './first-hour.ts';
import { measureHooks } from './hooks.ts';
import { findPostgres } from './lanes/cluster.ts';
import { measureAdded, measureLatency, measurePaced } from './latency.ts';
import { measureLongReply } from './long-reply.ts';
import { type MemoryOptions, measureMemory } from './memory.ts';
import { type NetworkName, networkNames, titleOf } from './network.ts';
import { withBoth, withParley } from './pair.ts';
import { measureRecovery } from './recovery.ts';
import { measureResponses } from './responses.ts';
import { measureRest } from './rest.ts';
import type { Report, Sheet } from './sheet.ts';
import { measureShell } from './shell.ts';
import { measureStart, measureStartOfAll, measureUnusedOpenAi } from './start.ts';
import { measureSteer } from './steer.ts';
import { measureStorm } from './storm.ts';
import { measureTasks } from './tasks.ts';
import { measureWeb } from './web.ts';

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

type Part = {
  readonly title: string;
  /** Explains what the table can only show. */
  readonly about?: readonly string[];
  measure(pace: Pace): Promise<readonly Figure[]>;
};

/** Measurements by name, in the order of the report. Figures that name no network are Telegram's. */
const parts: Readonly<Record<string, Part>> = {
  paced: {
    title: 'A conversation with pauses',
    measure: ({ rounds }) => withBoth('telegram', (both) => measurePaced(both, rounds)),
  },
  latency: {
    title: 'One message after another',
    measure: ({ rounds }) => withBoth('telegram', (both) => measureLatency(both, rounds)),
  },
  added: {
    title: 'With a slow model',
    measure: ({ rounds }) => withBoth('telegram', (both) => measureAdded(both, rounds)),
  },
  burst: {
    title: '600 messages at once, to 200 chats',
    measure: ({ repeats }) => withBoth('telegram', (both) => measureBurst(both, { repeats, name: 'burst' })),
  },
  followup: {
    title: 'The same, each message its own turn',
    measure: ({ repeats }) =>
      withBoth(
        'telegram',
        (both) => measureBurst(both, { repeats, name: 'burst, each message its own turn' }),
        { settings: { queue: { dm: { mode: 'followup' } } } },
      ),
  },
  titles: {
    title: 'The same, in new chats that get titles',
    measure: ({ repeats }) =>
      withBoth('telegram', (both) => measureBurst(both, { repeats, name: 'burst with titles' }), {
        settings: { titles: true },
      }),
  },
  start: { title: 'Start', measure: ({ repeats }) => measureStart(repeats) },
  'first-hour': { title: 'The first hour', measure: () => measureFirstHour() },
  openai: {
    title: 'OpenAI, configured but unused',
    measure: ({ repeats }) => measureUnusedOpenAi(repeats),
  },
  memory: {
    title: 'Memory',
    about: [
      'Twenty runs in flight hold 1.5 MB: 75 kB each, and three times the text of its context (the messages, the request',
      'and its bytes). Once they have ended, nothing of it stays. Of the growth over 1,000 chats, 7 MB is live, mostly',
      'compiled code and what a model call loads; another 1,000 chats add 0.4 MB for their rate limits, up to 10,000',
      'senders. The rest is garbage, room for young objects and free memory, most of which V8 returns 100 s after its last',
      'full collection. A new chat costs as much as an old one; the first 1,000 messages of a process cost more than later',
      'ones, because code is compiled.',
    ],
    measure: ({ memory }) =>
      memoryOn('telegram', {
        ...memory,
        settles: true,
        target: { atRest: '≤ 145 MB', grown: '≤ 120 MB' },
      }),
  },
  rest: {
    title: 'At rest',
    measure: ({ isQuick }) =>
      withParley(['telegram'], (parley) => measureRest(parley, isQuick ? 20_000 : 60_000)),
  },
  feed: {
    title: 'Followers',
    about: [
      'The followers read in the process that measures, on the same machine. At once, a run is all work and no waiting.',
    ],
    measure: async ({ rounds }) => [
      ...(await withParley(['telegram'], (parley) => measureFeed(parley, Math.ceil(rounds / 5)))),
      ...(await withParley(['telegram'], measureFeedMemory)),
    ],
  },
  responses: {
    title: '100 calls of /v1/responses at once',
    about: ['Beside the same load from Telegram, in turns on one gateway. Each call begins a conversation.'],
    measure: ({ repeats }) => withParley(['telegram'], (parley) => measureResponses(parley, repeats)),
  },
  steer: {
    title: 'A steer between two tools',
    measure: ({ rounds }) =>
      withParley(['telegram'], (parley) => measureSteer(parley, Math.ceil(rounds / 2))),
  },
  storm: {
    title: '200 conversations at once, with the limits of the networks',
    about: [
      'Telegram allows a bot 30 calls a second, of which drafts and typing are counted here, too; Discord 50, and five',
      'edits in five seconds in a channel. Each answer is written for eight seconds.',
    ],
    measure: ({ isQuick }) => measureStorm(isQuick ? 50 : 200),
  },
  'long-reply': {
    title: 'Shaping an answer of 100 kB',
    about: ['Parsed in a thread of its own, then split into messages in turns of the event loop.'],
    measure: ({ repeats }) => measureLongReply(2 * repeats),
  },
  web: {
    title: 'Reading a page',
    about: [
      'The page is parsed in a thread of its own, which is started for it and ends with it. Measured with the sources; the',
      'bundle starts the thread in 70 ms instead of 190.',
    ],
    measure: ({ repeats }) => measureWeb(2 * repeats),
  },
  children: {
    title: 'Sub-agents',
    measure: async ({ rounds, repeats, isQuick }) => [
      ...(await withParley(['telegram'], (parley) => measureChildren(parley, rounds))),
      ...(await measureCrowd(repeats)),
      ...(await measureFinish(isQuick ? 50 : 300)),
    ],
  },
  tasks: {
    title: 'Graphs of subtasks',
    about: [
      'In the store alone: peers answer at once. The time of a subtask includes the dispatch, the claim and the answer of',
      'its peer, and its reply; that of a message includes its arrival, claim and answer.',
    ],
    measure: async ({ isQuick }) => {
      const sizes = isQuick ? { nodes: 200, graphs: 10 } : { nodes: 1_000, graphs: 50 };
      const cluster = await findPostgres();
      try {
        return [...(await measureTasks(sizes)), ...(cluster ? await measureTasks(sizes, cluster.url) : [])];
      } finally {
        await cluster?.stop();
      }
    },
  },
  budgets: {
    title: 'A shared budget',
    measure: async ({ isQuick }) => {
      const cluster = await findPostgres();
      try {
        return await measureBudgets(cluster?.url, isQuick ? 5 : 30);
      } finally {
        await cluster?.stop();
      }
    },
  },
  context: {
    title: 'A growing conversation',
    measure: ({ isQuick }) =>
      withParley(['telegram'], (parley) => measureContext(parley, isQuick ? 1_000 : 10_000)),
  },
  cache: {
    title: "The provider's cache",
    measure: ({ isQuick }) => measureCache(isQuick ? 10 : 30),
  },
  hooks: {
    title: 'Hooks and permission, for each tool call',
    about: [
      'What `before_tool_call`, `after_tool_call`, `tool_result_persist` and the rules add to a call with 2 kB of text.',
    ],
    measure: ({ rounds }) => measureHooks(rounds),
  },
  shell: { title: 'Commands in the sandbox', measure: ({ rounds }) => measureShell(rounds) },
  crash: { title: 'A crash', measure: () => measureCrash() },
  recovery: { title: 'Recovery', measure: ({ repeats }) => measureRecovery(Math.min(repeats, 3)) },
  discord: { title: 'Discord', measure: (pace) => measureNetwork('discord', pace) },
  signal: { title: 'Signal', measure: (pace) => measureNetwork('signal', pace) },
  networks: {
    title: 'All networks',
    measure: async ({ repeats, memory }) => {
      const target = { atRest: '≤ 190 MB', grown: '' };
      const atRest = await withParley(networkNames, (parley) =>
        measureMemory({ parley }, { ...memory, target }),
      );
      return named('all networks', [...(await measureStartOfAll(repeats)), ...atRest]);
    },
  },
};

/** A report and how its parts are measured. */
export type MeasuredReport = Report & { measure(part: string, pace: Pace): Promise<readonly Sheet[]> };

/** The comparison of Parley with the floor. */
export const benchmarksReport: MeasuredReport = {
  name: 'benchmarks.md',
  opening: [
    '# Benchmarks',
    '',
    'What Parley costs compared with the floor: a bot of a few lines on the same SDKs, with a promise chain per chat,',
    'its history in memory and nothing durable (`bench/floors`). Both talk to the same local platforms, alternating',
    "within the same run, so the ratios carry over to other machines even where the absolute figures don't. All",
    'figures are medians; none is asserted. When the load exceeds the number of processors, other programs are busy,',
    'and every hand-over between threads waits for them.',
    '',
    'The first table is the one people feel: they pause between messages, and after a pause caches are cold.',
  ],
  parts: Object.keys(parts),
  measure: async (name, pace) => {
    const part = parts[name];
    if (!part) return [];
    return [{ title: part.title, about: part.about ?? [], ...figureRows(await part.measure(pace)) }];
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

/** Removes the target, since targets are Telegram's. */
function measured(figure: Figure): Figure {
  return { ...figure, target: '' };
}

function memoryOn(name: NetworkName, options: MemoryOptions): Promise<readonly Figure[]> {
  return withBoth(name, ([floor, parley]) => measureMemory({ floor, parley }, options));
}

function named(title: string, figures: readonly Figure[]): readonly Figure[] {
  return figures.map((figure) => ({ ...figure, name: `${title}: ${figure.name}` }));
}
