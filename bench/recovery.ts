import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { privateSocket, startOwnRedis, untilServing } from '../test/e2e/redis-faults.ts';
import { type AtEnd, openStage, type Stage } from '../test/e2e/stage.ts';
import { untilSaid } from '../test/e2e/telegram-chat.ts';
import { until } from '../test/e2e/until.ts';
import { createGate, type Gate } from '../test/platforms/anthropic/gate.ts';
import { lastUserText } from '../test/platforms/anthropic/wire.ts';
import type { TgUser } from '../test/platforms/telegram/types.ts';
import { now } from './clock.ts';
import type { Figure } from './figure.ts';
import { findPostgres } from './lanes/cluster.ts';
import { median } from './statistics.ts';

type Scenario = Pick<Figure, 'name' | 'target'> & {
  /** Ms from the fault to the end of its effect; undefined where it can't be measured. */
  measure(atEnd: AtEnd): Promise<number | undefined>;
};

const ada: TgUser = { id: 501, is_bot: false, first_name: 'Ada' };
const bob: TgUser = { id: 502, is_bot: false, first_name: 'Bob' };
/** One slot: while Ada's run holds it, Bob's message waits for a wake. */
const oneSlot = { lanes: { concurrency: { main: 1 } } };

const scenarios: readonly Scenario[] = [
  { name: 'Redis back after an outage: first wake', target: '≤ 2000 ms', measure: wakesReturn },
  {
    name: 'kill -9 of the process that runs the private Redis: Redis is back',
    target: '≤ 5000 ms',
    measure: redisTakenOver,
  },
  {
    name: 'SIGTERM while Redis is down: the process has ended',
    target: '≤ 5000 ms',
    measure: stopWithoutRedis,
  },
  {
    name: 'start on the folder of a killed process: ready',
    target: '≤ 2000 ms',
    measure: startBesideDeadOwner,
  },
  {
    name: 'kill -9 of a worker: another worker on its folder resumes the run',
    target: '≤ 2000 ms',
    measure: runTakenOver,
  },
  {
    name: 'kill -9 of a gateway, another elsewhere: next message answered',
    target: '≤ 15000 ms',
    measure: accountTakenOver,
  },
];

/** Measures how long Parley needs to recover. The faults are those of test/e2e, which asserts the messages' fate. */
export async function measureRecovery(repeats: number): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const { name, target, measure } of scenarios) {
    const taken: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat += 1) taken.push(...(await inOrder(measure)));
    if (taken.length > 0) figures.push({ name, unit: 'ms', parley: median(taken), target });
  }
  return figures;
}

/** Closes in reverse order of opening. */
async function inOrder(measure: Scenario['measure']): Promise<readonly number[]> {
  const ends: (() => Promise<void>)[] = [];
  try {
    const tookMs = await measure((end) => ends.push(end));
    return tookMs === undefined ? [] : [tookMs];
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

/** Answers nothing until the gate opens. */
function answerBehind({ model }: Stage): Gate {
  const gate = createGate();
  model.script((body) => ({ text: `You said: ${lastUserText(body)}`, hold: { gate } }));
  return gate;
}

async function answered({ telegram }: Stage, from: TgUser, text: string): Promise<void> {
  telegram.userSends({ from, text });
  await untilSaid(telegram, { chat: from.id, text: new RegExp(text) });
}

async function wakesReturn(atEnd: AtEnd): Promise<number> {
  const redis = await startOwnRedis(atEnd);
  const stage = await openStage({ config: oneSlot, env: { REDIS_URL: redis.socketPath } }, atEnd);
  const gate = answerBehind(stage);
  await stage.start();
  stage.telegram.userSends({ from: ada, text: 'One.' });
  await stage.model.waitForRequest(1);
  await redis.kill();
  stage.telegram.userSends({ from: bob, text: 'Two.' });
  await until(() => stage.telegram.updates.pending.length === 0, { what: 'the message is taken in' });
  await redis.start();
  const since = now();
  const client = new Redis(redis.socketPath);
  atEnd(async () => client.disconnect());
  const isWoken = async () => (await client.keys('*')).some((key) => key.includes(String(bob.id)));
  await until(isWoken, { what: 'a wake' });
  const tookMs = now() - since;
  gate.open();
  return tookMs;
}

async function redisTakenOver(atEnd: AtEnd): Promise<number> {
  const { start, dataDir } = await openStage({}, atEnd);
  const owner = await start({ role: 'worker' });
  await Promise.all([start({ role: 'gateway' }), start({ role: 'worker' })]);
  await untilServing(privateSocket(dataDir));
  const since = now();
  await owner.kill();
  const isBack = async () =>
    /redis\.owner-lost[\s\S]*redis\.restarted/.test(await readFile(join(dataDir, 'test.log'), 'utf8'));
  await until(isBack, { what: 'Redis is there again' });
  return now() - since;
}

async function stopWithoutRedis(atEnd: AtEnd): Promise<number> {
  const redis = await startOwnRedis(atEnd);
  const stage = await openStage({ env: { REDIS_URL: redis.socketPath } }, atEnd);
  const gate = answerBehind(stage);
  const parley = await stage.start();
  stage.telegram.userSends({ from: ada, text: 'One.' });
  await stage.model.waitForRequest(1);
  await redis.kill();
  const since = now();
  await parley.stop();
  const tookMs = now() - since;
  gate.open();
  return tookMs;
}

async function startBesideDeadOwner(atEnd: AtEnd): Promise<number> {
  const stage = await openStage({}, atEnd);
  const first = await stage.start();
  await answered(stage, ada, 'One.');
  await first.kill();
  const since = now();
  await stage.start();
  return now() - since;
}

async function runTakenOver(atEnd: AtEnd): Promise<number> {
  const stage = await openStage({}, atEnd);
  await stage.start({ role: 'gateway' });
  const worker = await stage.start({ role: 'worker' });
  const gate = answerBehind(stage);
  stage.telegram.userSends({ from: ada, text: 'One.' });
  await stage.model.waitForRequest(1);
  await stage.start({ role: 'worker' });
  const since = now();
  await worker.kill();
  await stage.model.waitForRequest(2);
  const tookMs = now() - since;
  gate.open();
  return tookMs;
}

async function accountTakenOver(atEnd: AtEnd): Promise<number | undefined> {
  const cluster = await findPostgres();
  if (!cluster) return undefined;
  atEnd(() => cluster.stop());
  const stage = await openStage({ env: { DATABASE_URL: cluster.url } }, atEnd);
  const first = await stage.start({ role: 'gateway', folder: 'one' });
  await stage.start({ role: 'gateway', folder: 'two' });
  await stage.start({ role: 'worker', folder: 'three' });
  await answered(stage, ada, 'One.');
  const since = now();
  await first.kill();
  await answered(stage, ada, 'Two.');
  return now() - since;
}
