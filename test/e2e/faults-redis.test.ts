import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { untilAtRest, untilLedger } from './conservation.ts';
import { crowdAtWork, forCrowd, gatherCrowd } from './crowd.ts';
import { flushAll, privateSocket, startOwnRedis, untilServing } from './redis-faults.ts';
import { startTelegramGateway } from './telegram-gateway.ts';

const slowly = { chunkDelayMs: 20 };

describe.concurrent('Parley loses nothing and doubles nothing when its Redis', () => {
  test('stops for ten seconds: what was begun is answered meanwhile, what came is answered after', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ config: forCrowd }, onTestFinished);
    const crowd = gatherCrowd(telegram, 5);
    const gate = createGate();
    model.script((body) => ({ text: `You said: ${lastUserText(body)}`, hold: { gate } }));
    crowd.speaks();
    await model.waitForRequest(5);
    const redis = await untilServing(privateSocket(dataDir));
    process.kill(redis, 'SIGSTOP');
    const stoppedAt = performance.now();
    gate.open();
    await telegram.waitFor(() => crowd.answered() === 5);
    crowd.speaks();
    await untilLedger(dataDir, 10);
    // The length of the stop is the fault itself.
    await pause(10_000 - (performance.now() - stoppedAt));
    process.kill(redis, 'SIGCONT');
    await untilAtRest(dataDir, 10);
    expect(crowd.breaches(dataDir)).toEqual([]);
    expect(crowd.count()).toBe(10);
  });

  test('is killed again and again under load', { timeout: 300_000 }, async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ config: forCrowd }, onTestFinished);
    const crowd = gatherCrowd(telegram, 8);
    model.script((body) => ({ chunks: ['You said: ', lastUserText(body)], ...slowly }));
    for (let times = 1; times <= 4; times++) {
      crowd.speaks();
      crowd.speaks();
      process.kill(await untilServing(privateSocket(dataDir)), 'SIGKILL');
      await telegram.waitFor(() => crowd.answered() >= times * 8);
    }
    await untilAtRest(dataDir, crowd.count());
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test('is emptied again and again under load', { timeout: 300_000 }, async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ config: forCrowd }, onTestFinished);
    const crowd = gatherCrowd(telegram, 8);
    model.script((body) => ({ chunks: ['You said: ', lastUserText(body)], ...slowly }));
    for (let times = 1; times <= 8; times++) {
      crowd.speaks();
      await flushAll(privateSocket(dataDir));
      await telegram.waitFor(() => crowd.answered() >= (times - 1) * 8);
    }
    await untilAtRest(dataDir, crowd.count());
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test('is one of its owner, and that is emptied, killed and away for a while', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const redis = await startOwnRedis(onTestFinished);
    const settings = { config: forCrowd, env: { REDIS_URL: redis.socketPath } };
    const { telegram, dataDir } = await startTelegramGateway(settings, onTestFinished);
    const crowd = gatherCrowd(telegram, 6);
    crowd.speaks();
    await flushAll(redis.socketPath);
    await telegram.waitFor(() => crowd.answered() === 6);
    await redis.kill();
    crowd.speaks();
    await untilLedger(dataDir, 12);
    await pause(2000);
    await redis.start();
    crowd.speaks();
    await untilAtRest(dataDir, 18);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test('is gone when Parley is told to stop: it stops, and goes on where it was', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const { redis, gateway, crowd, gate } = await aCrowdAtWork(onTestFinished);
    const { dataDir, parley, start } = gateway;
    await redis.kill();
    await parley().stop();
    await redis.start();
    gate.open();
    await start();
    crowd.speaks();
    await untilAtRest(dataDir, 6);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test('outlives a Parley that was killed: the next one goes on within seconds', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const { gateway, crowd, gate } = await aCrowdAtWork(onTestFinished);
    const { telegram, dataDir, parley, start } = gateway;
    await parley().kill();
    gate.open();
    await start();
    await telegram.waitFor(() => crowd.answered() === 3);
    crowd.speaks();
    await untilAtRest(dataDir, 6);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });
});

/** A gateway on a Redis of its owner, which outlives it, with three answers that wait for the gate. */
async function aCrowdAtWork(atEnd: Parameters<typeof startTelegramGateway>[1]) {
  const redis = await startOwnRedis(atEnd);
  const settings = { config: forCrowd, env: { REDIS_URL: redis.socketPath } };
  const gateway = await startTelegramGateway(settings, atEnd);
  return { redis, gateway, ...(await crowdAtWork(gateway, 3)) };
}
