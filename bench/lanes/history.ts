import { round, type Sheet } from '../sheet.ts';
import { type Ground, type Parley, prepareGround, startProcess, usageOf } from './farm.ts';
import { middleAndTail, offer, timesOf } from './throughput.ts';

const durationMs = 2_000;

/** Measures the cost of a message by the length of its session: one message at a time, on SQLite. */
export async function measureHistory(lengths: readonly number[]): Promise<Sheet> {
  const ground = await prepareGround('SQLite', undefined);
  const processes: Parley[] = [];
  try {
    const parley = await startProcess({ ground });
    processes.push(parley);
    await parley.next('receiving');
    await parley.next('ready');
    const one = { lanes: 1, isHot: false, durationMs, inHand: 1 };
    await offer(parley, { ...one, durationMs: 500 });
    const rows: (readonly string[])[] = [];
    for (const length of lengths) {
      await lengthen(ground, length);
      // A session that has grown too long is summarized by the first message.
      await offer(parley, { ...one, durationMs: 1 });
      await timesOf(processes);
      const before = await usageOf(ground, processes);
      const { messages } = await offer(parley, one);
      const after = await usageOf(ground, processes);
      const { accepted, sent } = await timesOf(processes);
      const at = await lengthOf(ground);
      rows.push([
        `${at - 2 * messages} to ${at}`,
        String(await shownOf(ground)),
        middleAndTail(accepted),
        middleAndTail(sent),
        round((after.parley - before.parley) / messages, 2),
      ]);
      console.log(rows.at(-1)?.join('  '));
    }
    return {
      title: 'One lane, by the length of its session',
      about: [
        'One message at a time, SQLite. A session of more than 600 messages, or one that outgrows the model’s window, is',
        'summarised first; its newest 200 messages stay.',
      ],
      heads: ['messages in the session', 'shown at the end', '→ model ms', '→ sent ms', 'Parley ms/message'],
      rows,
    };
  } finally {
    await Promise.all(processes.map((one) => one.stop()));
    await ground.close();
  }
}

async function lengthOf({ database }: Ground): Promise<number> {
  const [row] = await database.query('select "messageCount" as length from sessions');
  return Number(row?.length);
}

async function shownOf({ database }: Ground): Promise<number> {
  const [row] = await database.query('select "messageCount" - "keptFrom" as length from sessions');
  return Number(row?.length);
}

/** Extends the session to `length` messages by repeating what was said first. */
async function lengthen(ground: Ground, length: number): Promise<void> {
  const { database } = ground;
  const now = await lengthOf(ground);
  const pairs = Math.ceil((length - now) / 2);
  if (pairs <= 0) return;
  await database.query(
    `insert into transcript (id, "sessionId", position, role, parts, model, "runId", "isFinished", "createdAt", "updatedAt")
     select id || '-${now}-' || s.n, "sessionId", ${now} + 2 * (s.n - 1) + position, role, parts, model, "runId", "isFinished", "createdAt", "updatedAt"
     from transcript, ${database.numbers(1, pairs)} s where position <= 2`,
  );
  await database.query(`update sessions set "messageCount" = "messageCount" + ${2 * pairs}`);
}
