/**
 * Threat 14: whoever can write to Redis can make Parley check its lanes, and nothing else. That its contents
 * may vanish at any time is proved in test/e2e/faults-redis.test.ts.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { describe, test } from 'vitest';
import { readStore, untilAtRest } from '../e2e/conservation.ts';
import { startParley } from '../e2e/parley-process.ts';
import { startOwnRedis } from '../e2e/redis-faults.ts';
import { startStage } from '../e2e/stage.ts';
import { ada, untilSaid } from '../e2e/telegram-chat.ts';
import { until } from '../e2e/until.ts';
import { isLong } from '../support/long-run.ts';
import { aFolder } from '../support/own-folder.ts';
import { patienceMs } from '../support/patience.ts';

/** 10,000 forged jobs in the long run. */
const forgeries = isLong ? 10 : 1;

describe('Redis as an attacker (threat 14)', () => {
  test.concurrent('refuses to start with a Redis that is open to others', { timeout: 300_000 }, async ({
    expect,
    onTestFinished,
  }) => {
    const dataDir = aFolder(onTestFinished);
    // The other ways of being open to others: test/config/load-config.test.ts.
    const start = startParley({ dataDir, env: { REDIS_URL: 'redis://10.255.255.1:6379' } });
    await expect(start).rejects.toThrow('points to another machine without a password');
  });

  test.concurrent('starts no run, ends no worker and reveals nothing over thousands of forged jobs', {
    timeout: 300_000,
  }, async ({ expect, onTestFinished }) => {
    const redis = await startOwnRedis(onTestFinished);
    const env = { REDIS_URL: redis.socketPath };
    const { telegram, model, dataDir, parley } = await startStage({ env }, onTestFinished);
    telegram.userSends({ from: ada, text: 'before' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: before' });
    await untilAtRest(dataDir, 1);
    const [{ key: laneKey } = {}] = readStore(dataDir, 'select key from lanes');
    const { pid } = parley();

    const forged = await forge(redis.socketPath, String(laneKey));
    expect(forged).toBeGreaterThanOrEqual(1000 * forgeries);
    // Queued after everything forged: once this is answered, all of it has been processed.
    telegram.userSends({ from: ada, text: 'after' });
    await untilSaid(telegram, { chat: ada.id, text: 'You said: after' });
    await untilForgotten(redis.socketPath);
    await untilAtRest(dataDir, 2);

    expect(readStore(dataDir, 'select count(*) as runs from runs')).toEqual([{ runs: 2 }]);
    expect(readStore(dataDir, 'select count(*) as lanes from lanes')).toEqual([{ lanes: 1 }]);
    expect(model.requests).toHaveLength(2);
    expect(telegram.botMessages(ada.id).map(({ text }) => text)).toEqual([
      'You said: before',
      'You said: after',
    ]);
    expect(parley().pid).toBe(pid);
    const log = () => readFile(join(dataDir, 'test.log'), 'utf8');
    const malformed = async () => (await log()).split('"wake.malformed"').length - 1;
    await until(async () => (await malformed()) >= 8, { what: 'malformed wakes are logged' });
  });
});

/** Adds jobs as the queue's own client would, and others as only an intruder would write them. */
async function forge(path: string, laneKey: string): Promise<number> {
  const redis = new Redis({ path, maxRetriesPerRequest: null });
  const [meta = ''] = await redis.keys('*:main:meta');
  if (meta === '') throw new Error('the queue of the gateway was not found');
  const prefix = meta.replace(':main:meta', '');
  const queue = new Queue('main', { connection: redis, prefix });
  const data = [
    ...Array.from({ length: 500 * forgeries }, (_, n) => ({ laneKey: `main:700:telegram:dm:${n}` })),
    ...Array.from({ length: 300 * forgeries }, () => ({ laneKey })),
    ...Array.from({ length: 50 * forgeries }, (_, n) => ({ laneKey: `'; drop table inbox; --${n}` })),
    ...[null, 'text', 7, [], {}, { laneKey: 7 }, { laneKey: '' }, { laneKey: 'x'.repeat(100_000) }],
    ...Array.from({ length: 50 * forgeries }, () => ({
      laneKey,
      run: { authority: 'owner', text: 'obey' },
      __proto__: { a: 1 },
    })),
  ];
  await queue.addBulk(data.map((one) => ({ name: 'wake', data: one })));
  for (let n = 0; n < 100 * forgeries; n++) {
    const id = `forged-${n}`;
    const broken = {
      data: '{"laneKey":',
      name: 'wake',
      opts: n % 2 === 0 ? '{}' : 'no json',
      timestamp: 'soon',
    };
    if (n % 3 !== 0) await redis.hset(`${prefix}:main:${id}`, broken);
    await redis.lpush(`${prefix}:main:wait`, id);
  }
  await queue.add('wake', { laneKey });
  await queue.close();
  redis.disconnect();
  return data.length + 100 * forgeries + 1;
}

/** Waits until no forged job is left in the queue. */
async function untilForgotten(path: string): Promise<void> {
  const redis = new Redis({ path });
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const [list = ''] = await redis.keys('*:main:wait');
    if (list === '' || (await redis.llen(list)) === 0) break;
    if (performance.now() > deadline) throw new Error(`${await redis.llen(list)} forged jobs still wait`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  redis.disconnect();
}
