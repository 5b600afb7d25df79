import { count, round, type Sheet } from '../sheet.ts';
import { type Ground, type Parley, prepareGround } from './farm.ts';
import { readPattern, seedLanes } from './seed.ts';
import { offer, startAll } from './throughput.ts';

/** Measures the stored size of a lane, and of each message with its answer. */
export async function measureSizes(
  kind: Ground['kind'],
  postgres: string | undefined,
  lanes: number,
): Promise<Sheet> {
  const few = await sizeWith(kind, postgres, { lanes, messages: 1 });
  const more = await sizeWith(kind, postgres, { lanes, messages: 5 });
  const perMessage = (more.bytes - few.bytes) / (more.messages - few.messages) / lanes;
  const perLane = few.bytes / lanes - few.messages * perMessage;
  const rows = [
    ['a lane, its session and its conversation', '', round(perLane / 1000, 2)],
    ['a message with its answer', '', round(perMessage / 1000, 2)],
  ];
  for (const [table, bytes] of more.byTable) {
    const each = (bytes - (few.byTable.get(table) ?? 0)) / (more.messages - few.messages) / lanes;
    if (each >= 5) rows.push(['', `of which ${table} with its indexes`, round(each / 1000, 2)]);
  }
  return {
    title: `${kind}: what is stored`,
    about: [
      `${count(lanes)} lanes at rest, tables and indexes, after one message each and after ${more.messages}: a question of 110 characters, an answer of 380.`,
    ],
    heads: ['what', 'part', 'kB'],
    rows,
  };
}

type Sized = {
  readonly messages: number;
  readonly bytes: number;
  readonly byTable: ReadonlyMap<string, number>;
};

async function sizeWith(
  kind: Ground['kind'],
  postgres: string | undefined,
  { lanes, messages }: { readonly lanes: number; readonly messages: number },
): Promise<Sized> {
  const ground = await prepareGround(kind, postgres);
  const processes: Parley[] = [];
  try {
    await startAll(ground, 0, processes);
    const [parley] = processes;
    for (let said = 1; said < messages && parley; said++)
      await offer(parley, { lanes: 1, isHot: false, durationMs: 1, inHand: 1 });
    await Promise.all(processes.splice(0).map((one) => one.stop()));
    const { database } = ground;
    const [row] = await database.query('select count(*) as rows from inbox');
    const pattern = await readPattern(database);
    await database.settle();
    const before = await database.sizeBytes();
    await seedLanes(database, pattern, { from: 1, to: lanes + 1 });
    const bytes = (await database.sizeBytes()) - before;
    return { messages: Number(row?.rows), bytes, byTable: await database.bytesByTable() };
  } finally {
    await Promise.all(processes.map((one) => one.stop()));
    await ground.close();
  }
}
