import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { describe, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { findBreaches, untilAtRest, untilLedger } from './conservation.ts';
import { flushAll, privateSocket, startOwnRedis, untilServing } from './redis-faults.ts';
import { ada, bob, startTelegramGateway, untilSaid } from './telegram-gateway.ts';
import { until } from './until.ts';

/** One slot, which Ada's run holds: Bob's message has to wait for a wake. */
const config = { lanes: { concurrency: { main: 1 } } };

type Cleanup = (end: () => Promise<void>) => void;

/** Parley with a message that is being answered and another one that waits, over a Redis at `socketPath`. */
async function aWaitingLane(env: Readonly<Record<string, string>>, atEnd: Cleanup) {
  const gateway = await startTelegramGateway({ config, env }, atEnd);
  const { telegram, model, dataDir } = gateway;
  const gate = createGate();
  model.script((body) => ({ text: `You said: ${lastUserText(body)}`, hold: { gate } }));
  telegram.userSends({ from: ada, text: 'One.' });
  await model.waitForRequest(1);
  const finish = async () => {
    gate.open();
    await untilSaid(telegram, { chat: ada.id, text: 'You said: One.' });
    await untilSaid(telegram, { chat: bob.id, text: 'You said: Two.' });
    await untilAtRest(dataDir, 2);
    return findBreaches(dataDir);
  };
  const bobWrites = async () => {
    telegram.userSends({ from: bob, text: 'Two.' });
    await untilLedger(dataDir, 2);
  };
  return { dataDir, bobWrites, finish };
}

/** How long it takes until Redis holds a wake for Bob's lane, ms. */
async function untilWoken(socketPath: string): Promise<number> {
  const since = performance.now();
  const redis = new Redis(socketPath, { retryStrategy: () => 10, maxRetriesPerRequest: null });
  // Until the server is there again.
  redis.on('error', () => undefined);
  try {
    const isWoken = async () => (await redis.keys('*')).some((key) => key.includes(String(bob.id)));
    await until(isWoken, { what: `a wake for Bob's lane` });
    return Math.round(performance.now() - since);
  } finally {
    redis.disconnect();
  }
}

describe.concurrent('the wakes of a Redis', () => {
  test('that was away are there again, and what was begun went on', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const redis = await startOwnRedis(onTestFinished);
    const { bobWrites, finish } = await aWaitingLane({ REDIS_URL: redis.socketPath }, onTestFinished);
    await redis.kill();
    await bobWrites();
    await redis.start();
    console.info(`first wake ${await untilWoken(redis.socketPath)} ms after Redis was back`);
    expect(await finish()).toEqual([]);
  });

  test('that was emptied are there again', { timeout: 300_000 }, async ({ expect, onTestFinished }) => {
    const { dataDir, bobWrites, finish } = await aWaitingLane({}, onTestFinished);
    await bobWrites();
    await untilWoken(privateSocket(dataDir));
    await flushAll(privateSocket(dataDir));
    console.info(`first wake ${await untilWoken(privateSocket(dataDir))} ms after FLUSHALL`);
    expect(await finish()).toEqual([]);
  });

  test('whose folder was deleted are there again after its return', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const { dataDir, bobWrites, finish } = await aWaitingLane({}, onTestFinished);
    const before = await untilServing(privateSocket(dataDir));
    await rm(join(dataDir, 'redis'), { recursive: true, force: true, maxRetries: 5 });
    await bobWrites();
    expect(await untilServing(privateSocket(dataDir))).not.toBe(before);
    console.info(`first wake ${await untilWoken(privateSocket(dataDir))} ms after the folder was back`);
    expect(await finish()).toEqual([]);
  });
});
