import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { beforeAll, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { countEvents, findBreaches, untilAtRest, untilLedger } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { telegramPerson } from './person.ts';
import { flushAll, privateSocket, startOwnRedis, untilServing } from './redis-faults.ts';
import { type Stage, startStage } from './stage.ts';
import { untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

/** One slot, held by the first person's run: the second person's message has to wait for a wake. */
const config = { access: { dmPolicy: 'open' }, lanes: { concurrency: { main: 1 } } };

/** The first of two people has a message being answered, so that a message from the second waits. */
async function aWaitingLane({ telegram, model, dataDir }: Stage, ids: readonly [number, number]) {
  const [first, second] = ids.map((id) => telegramPerson(telegram, id));
  const [before, asked] = [countEvents(dataDir), model.requests.length];
  const gate = createGate();
  model.script((body) => ({ text: `You said: ${lastUserText(body)}`, hold: { gate } }));
  first?.says('One.');
  await model.waitForRequest(asked + 1);
  const finish = async () => {
    gate.open();
    await untilSaid(telegram, { chat: ids[0], text: 'You said: One.' });
    await untilSaid(telegram, { chat: ids[1], text: 'You said: Two.' });
    await untilAtRest(dataDir, before + 2);
    return findBreaches(dataDir);
  };
  const secondWrites = async () => {
    second?.says('Two.');
    await untilLedger(dataDir, before + 2);
  };
  return { secondWrites, finish };
}

/** Returns how long it takes until Redis holds a wake for the person's lane, ms. */
async function untilWoken(socketPath: string, id: number): Promise<number> {
  const since = performance.now();
  const redis = new Redis(socketPath, { retryStrategy: () => 10, maxRetriesPerRequest: null });
  // Errors are expected until the server is back.
  redis.on('error', () => undefined);
  try {
    const isWoken = async () => (await redis.keys('*')).some((key) => key.includes(`:${id}`));
    await until(isWoken, { what: `a wake for the lane of ${id}` });
    return Math.round(performance.now() - since);
  } finally {
    redis.disconnect();
  }
}

test.concurrent('restores wakes after Redis was away, while runs continue', async ({
  expect,
  onTestFinished,
}) => {
  const redis = await startOwnRedis(onTestFinished);
  const settings = { config, env: { REDIS_URL: redis.socketPath } };
  const gateway = await startStage(settings, onTestFinished);
  const { secondWrites, finish } = await aWaitingLane(gateway, [501, 502]);
  await redis.kill();
  await secondWrites();
  await redis.start();
  console.info(`first wake ${await untilWoken(redis.socketPath, 502)} ms after Redis was back`);
  expect(await finish()).toEqual([]);
});

describeRow('the wakes of a Redis', (atEnd) => {
  let gateway: Stage;

  beforeAll(async () => {
    gateway = await startStage({ config }, atEnd);
  });

  test('restores wakes after Redis was emptied', async ({ expect }) => {
    const socket = privateSocket(gateway.dataDir);
    const { secondWrites, finish } = await aWaitingLane(gateway, [501, 502]);
    await secondWrites();
    await untilWoken(socket, 502);
    await flushAll(socket);
    console.info(`first wake ${await untilWoken(socket, 502)} ms after FLUSHALL`);
    expect(await finish()).toEqual([]);
  });

  test('restores wakes after the folder of Redis was deleted', async ({ expect }) => {
    const { dataDir } = gateway;
    const socket = privateSocket(dataDir);
    const { secondWrites, finish } = await aWaitingLane(gateway, [503, 504]);
    const before = await untilServing(socket);
    await rm(join(dataDir, 'redis'), { recursive: true, force: true, maxRetries: 5 });
    await secondWrites();
    expect(await untilServing(socket)).not.toBe(before);
    console.info(`first wake ${await untilWoken(socket, 504)} ms after the folder was back`);
    expect(await finish()).toEqual([]);
  });
});
