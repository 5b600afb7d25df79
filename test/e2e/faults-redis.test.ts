import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, test } from 'vitest';
import { lastUserText } from '../platforms/anthropic/wire.ts';
import { isLong } from '../support/long-run.ts';
import { countEvents, untilAtRest, untilLedger } from './conservation.ts';
import { crowdAtWork, forCrowd, gatherCrowd } from './crowd.ts';
import { describeRow } from './describe-row.ts';
import { flushAll, type OwnRedis, privateSocket, startOwnRedis, untilServing } from './redis-faults.ts';
import { type Stage, startStage } from './stage.ts';

/** Threat 14 asks for 50. */
const timesEmptied = isLong ? 50 : 8;
const slowly = { chunkDelayMs: 20 };

describeRow('a gateway whose Redis fails', (atEnd) => {
  let gateway: Stage;

  beforeAll(async () => {
    gateway = await startStage({ config: forCrowd }, atEnd);
  });

  test('finishes its runs while Redis hangs for ten seconds, and answers new messages afterwards', async ({
    expect,
  }) => {
    const { telegram, dataDir } = gateway;
    const before = countEvents(dataDir);
    const { crowd, gate } = await crowdAtWork(gateway, 5, { name: 'Patient', firstId: 1001 });
    const redis = await untilServing(privateSocket(dataDir));
    process.kill(redis, 'SIGSTOP');
    const stoppedAt = performance.now();
    gate.open();
    await telegram.waitFor(() => crowd.answered() === 5);
    crowd.speaks();
    await untilLedger(dataDir, before + 10);
    // The length of the stop is the fault itself.
    await pause(10_000 - (performance.now() - stoppedAt));
    process.kill(redis, 'SIGCONT');
    await untilAtRest(dataDir, before + 10);
    expect(crowd.breaches(dataDir)).toEqual([]);
    expect(crowd.count()).toBe(10);
  });

  test('loses and doubles nothing while Redis is killed repeatedly under load', async ({ expect }) => {
    const { telegram, model, dataDir } = gateway;
    const before = countEvents(dataDir);
    const crowd = gatherCrowd(telegram, 8, { name: 'Killed', firstId: 2001 });
    model.script((body) => ({ chunks: ['You said: ', lastUserText(body)], ...slowly }));
    for (let times = 1; times <= 4; times++) {
      crowd.speaks();
      crowd.speaks();
      process.kill(await untilServing(privateSocket(dataDir)), 'SIGKILL');
      await telegram.waitFor(() => crowd.answered() >= times * 8);
    }
    await untilAtRest(dataDir, before + crowd.count());
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test('loses and doubles nothing while Redis is emptied repeatedly under load', async ({ expect }) => {
    const { telegram, model, dataDir } = gateway;
    const before = countEvents(dataDir);
    const crowd = gatherCrowd(telegram, 8, { name: 'Emptied', firstId: 3001 });
    model.script((body) => ({ chunks: ['You said: ', lastUserText(body)], ...slowly }));
    for (let times = 1; times <= timesEmptied; times++) {
      crowd.speaks();
      await flushAll(privateSocket(dataDir));
      await telegram.waitFor(() => crowd.answered() >= (times - 1) * 8);
    }
    await untilAtRest(dataDir, before + crowd.count());
    expect(crowd.breaches(dataDir)).toEqual([]);
  });
});

describeRow("a gateway with a Redis that it doesn't run", (atEnd) => {
  let redis: OwnRedis;
  let gateway: Stage;

  beforeAll(async () => {
    redis = await startOwnRedis(atEnd);
    gateway = await startStage({ config: forCrowd, env: { REDIS_URL: redis.socketPath } }, atEnd);
  });

  test('loses and doubles nothing when an external Redis is emptied, killed and away for a while', async ({
    expect,
  }) => {
    const { telegram, dataDir } = gateway;
    const before = countEvents(dataDir);
    const crowd = gatherCrowd(telegram, 6, { name: 'Owned', firstId: 1001 });
    crowd.speaks();
    await flushAll(redis.socketPath);
    await telegram.waitFor(() => crowd.answered() === 6);
    await redis.kill();
    crowd.speaks();
    await untilLedger(dataDir, before + 12);
    await pause(2000);
    await redis.start();
    crowd.speaks();
    await untilAtRest(dataDir, before + 18);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test('stops although Redis is gone, and continues after the next start', async ({ expect }) => {
    const { dataDir, parley, start } = gateway;
    const before = countEvents(dataDir);
    const { crowd, gate } = await crowdAtWork(gateway, 3, { name: 'Stopped', firstId: 2001 });
    await redis.kill();
    await parley().stop();
    await redis.start();
    gate.open();
    await start();
    crowd.speaks();
    await untilAtRest(dataDir, before + 6);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });

  test('continues within seconds after a kill that Redis survived', async ({ expect }) => {
    const { telegram, dataDir, parley, start } = gateway;
    const before = countEvents(dataDir);
    const { crowd, gate } = await crowdAtWork(gateway, 3, { name: 'Outlived', firstId: 3001 });
    await parley().kill();
    gate.open();
    await start();
    await telegram.waitFor(() => crowd.answered() === 3);
    crowd.speaks();
    await untilAtRest(dataDir, before + 6);
    expect(crowd.breaches(dataDir)).toEqual([]);
  });
});
