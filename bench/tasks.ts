/** Measures what delegation costs the store: graphs whose peers answer at once, without models and networks. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { settleTask } from '../src/store/delegation/settle-task.ts';
import type { StoreSettings } from '../src/store/open-configured.ts';
import { aCoordinator, type Node } from '../test/store/delegation/a-coordinator.ts';
import { openStore } from '../test/support/open-store.ts';
import type { Figure } from './figure.ts';

type Sizes = { readonly nodes: number; readonly graphs: number };

/**
 * Measures the processor time per subtask of large graphs against that of a message that is answered, the end of one of 200
 * siblings, and many graphs at once on two workers. `url`: of a PostgreSQL database of its own; absent: SQLite.
 */
export async function measureTasks(sizes: Sizes, url?: string): Promise<readonly Figure[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  const settings: StoreSettings = url === undefined ? { kind: 'sqlite', dataDir } : { kind: 'postgres', url };
  const stores = [await openStore(settings), await openStore(settings)];
  try {
    const [worker, second] = stores.map(aWorkerOn);
    if (!worker || !second) throw new Error('there are two stores');
    const on = url === undefined ? 'SQLite' : 'PostgreSQL';
    await worker.play(chain(50));
    const message = await timed(100, worker.message);
    const figures: Figure[] = [{ name: `${on}: a message`, unit: 'ms', parley: message, target: '' }];
    for (const [shape, graph] of Object.entries(shapes)) {
      const each = (await timed(1, () => worker.play(graph(sizes.nodes)))) / sizes.nodes;
      figures.push(
        { name: `${on}: a subtask, ${shape} of ${sizes.nodes}`, unit: 'ms', parley: each, target: '' },
        { name: `${on}: ratio to a message, ${shape}`, unit: '×', parley: each / message, target: '≤ 2 ×' },
      );
    }
    const reply = await worker.timedReply(200);
    const crowd = await timed(1, () => playAtOnce([worker, second], sizes.graphs));
    return [
      ...figures,
      { name: `${on}: the end of one of 200 siblings`, unit: 'ms', parley: reply, target: '' },
      { name: `${on}: ${sizes.graphs} graphs of 20 on two workers`, unit: 'ms', parley: crowd, target: '' },
      { name: `${on}: the same, a subtask`, unit: 'ms', parley: crowd / sizes.graphs / 20, target: '' },
    ];
  } finally {
    for (const store of stores) await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Returns the processor time of `act`, ms, including the writer thread's, but not that of PostgreSQL. */
async function timed(times: number, act: () => Promise<unknown>): Promise<number> {
  const since = process.cpuUsage();
  for (let time = 0; time < times; time++) await act();
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000 / times;
}

type Worker = ReturnType<typeof aWorkerOn>;

function aWorkerOn(store: Awaited<ReturnType<typeof openStore>>) {
  const worker = aCoordinator(store);
  /** Lets every peer answer once its lane is woken, as two processes would that share the wakes. */
  const play = async (
    graph: readonly Node[],
    workers: readonly { readonly answer: Answer }[] = [{ answer }],
  ) => {
    const limits = { depth: 5, nodes: graph.length, treeMs: 3_600_000 };
    const { run, lane } = await worker.converse();
    const asked = await worker.ask(run, graph, { limits });
    if (asked.kind === 'refused') throw new Error(`refused: ${asked.reason}`);
    await worker.answer(run);
    const { taskId } = asked;
    const woken = [...asked.effects.wakes.map(({ laneKey }) => laneKey)];
    let isUnsettled = asked.effects.tasks.some((task) => task.isUnsettled);
    for (let turn = 0; woken.length > 0 || isUnsettled; turn++) {
      if (isUnsettled) {
        const { wakes, tasks } = await store.write(settleTask, { taskId });
        isUnsettled = tasks.some((task) => task.isUnsettled);
        woken.push(...wakes.map(({ laneKey }) => laneKey));
      }
      const laneKey = woken.shift();
      const by = workers[turn % workers.length];
      if (laneKey === undefined || !by) continue;
      const effects = await by.answer(laneKey);
      isUnsettled ||= effects.tasks.some((task) => task.isUnsettled);
      woken.push(...effects.wakes.map((wake) => wake.laneKey).filter((key) => !woken.includes(key)));
    }
    const { state } = await worker.show(taskId);
    if (state !== 'done') throw new Error(`the task is ${state} in ${lane.key}`);
  };
  const answer = async (laneKey: string) => {
    const claimed = await worker.claim(laneKey, 600_000);
    if (claimed.kind !== 'run') return { wakes: [], tasks: [] };
    return (await worker.answer(claimed.run, 'An answer of some length. '.repeat(10))).effects;
  };
  const message = async () => {
    const { run } = await worker.converse();
    await worker.answer(run, 'An answer of some length. '.repeat(10));
  };
  /** Returns the time of the commit that ends a peer with this many siblings at work. */
  const timedReply = async (siblings: number) => {
    const graph = Array.from({ length: siblings }, (_, index) => ({ id: `n${index}` }));
    const { taskId } = await worker.begin(graph, {
      limits: { depth: 5, nodes: siblings, treeMs: 3_600_000 },
    });
    for (let left = true; left; )
      left = (await store.write(settleTask, { taskId })).tasks.some((task) => task.isUnsettled);
    const runs = [];
    for (const { id } of graph.slice(0, 30)) runs.push(await worker.claimPeer(taskId, id));
    const each = runs.values();
    return timed(runs.length, async () => {
      const { value: run } = each.next();
      if (run) await worker.answer(run, 'done');
    });
  };
  return { play, answer, message, timedReply };
}

type Answer = (laneKey: string) => Promise<{
  readonly wakes: readonly { readonly laneKey: string }[];
  readonly tasks: readonly { readonly isUnsettled: boolean }[];
}>;

function playAtOnce(workers: readonly Worker[], graphs: number): Promise<unknown> {
  return Promise.all(
    Array.from({ length: graphs }, (_, index) => workers[index % workers.length]?.play(layers(20), workers)),
  );
}

const ids = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);
const chain = (count: number): readonly Node[] =>
  ids(count).map((id, index) => ({ id, after: index === 0 ? [] : [`n${index - 1}`] }));
const fan = (count: number): readonly Node[] =>
  ids(count).map((id, index) => ({ id, after: index === 0 ? [] : ['n0'] }));
/** Layers of five, each node behind two of the layer above. */
const layers = (count: number): readonly Node[] =>
  ids(count).map((id, index) => {
    const above = Math.floor(index / 5) * 5 - 5;
    return { id, after: above < 0 ? [] : [`n${above + (index % 5)}`, `n${above + ((index * 3 + 1) % 5)}`] };
  });
const shapes = { chain, fan, layers };
