import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { startLaneWorkers } from '../../src/queue/lane-workers.ts';
import { createWakes } from '../../src/queue/wakes.ts';
import { openRedis, redisKeys } from '../../src/redis/connection.ts';
import { silentLog } from '../../test/support/silent-log.ts';
import { now, withDeadline } from '../clock.ts';
import { count, type Sheet } from '../sheet.ts';
import { type Ground, prepareGround } from './farm.ts';

const lanes = 1_000;
const concurrency = 50;
const atOnce = 200;

/** Measures the lane without the store: wakes through BullMQ, one job per lane, which empties a list in Redis. */
export async function measureBareLane(messages: number): Promise<Sheet> {
  const ground = await prepareGround('SQLite', undefined);
  try {
    const even = await drainThrough(ground, { messages, isHot: false });
    const hot = await drainThrough(ground, { messages, isHot: true });
    return {
      title: 'The bare lane',
      about: [
        `${count(messages)} messages that do nothing, ${count(lanes)} lanes, ${concurrency} running, no store: our wakes and workers on BullMQ and Redis`,
        'without persistence. A similar prototype drained 10,230/s evenly and 8,826/s with half of them in 1 % of the lanes.',
      ],
      heads: ['traffic', 'messages/s'],
      rows: [
        ['even', count(even)],
        ['half in 1 % of the lanes', count(hot)],
      ],
    };
  } finally {
    await ground.close();
  }
}

type Drain = { readonly messages: number; readonly isHot: boolean };

async function drainThrough({ redis: server }: Ground, { messages, isHot }: Drain): Promise<number> {
  const redis = openRedis({ kind: 'socket', path: server.socket }, silentLog);
  await redis.ready(AbortSignal.timeout(5_000));
  const deps = { redis, keys: redisKeys(`bare-${isHot}`), log: silentLog };
  const wakes = createWakes(deps);
  let drained = 0;
  let onDrained = () => {};
  const drive = async (laneKey: string) => {
    for (let last = 0; ; drained++) {
      const next = await redis.producer.lpop(`list:${laneKey}`);
      if (next === null) break;
      if (Number(next) < last) throw new Error(`lane ${laneKey} is out of order`);
      last = Number(next);
    }
    if (drained === messages) onDrained();
  };
  const driver = { drive, continueRun: unused, termsFor: unused };
  const workers = startLaneWorkers({ ...deps, concurrency: { main: concurrency }, driver });
  const began = now();
  await withDeadline<void>(120_000, 'the lanes were not empty', (resolve) => {
    onDrained = resolve;
    const push = async () => {
      for (let first = 0; first < messages; first += atOnce) {
        const keys = Array.from(
          { length: Math.min(atOnce, messages - first) },
          () => `lane-${laneFor(isHot)}`,
        );
        const pushes = redis.producer.pipeline();
        for (const [index, key] of keys.entries()) pushes.rpush(`list:${key}`, first + index + 1);
        await pushes.exec();
        for (const laneKey of keys) wakes.wake({ laneKey, class: 'main', delayMs: 0 });
        await systemClock.wait(0);
      }
    };
    push().catch((error: unknown) => console.error(error));
  });
  const perSecond = (messages / (now() - began)) * 1000;
  await workers.close();
  await wakes.close();
  redis.close();
  return perSecond;
}

function laneFor(isHot: boolean): number {
  return Math.floor(Math.random() * (isHot && Math.random() < 0.5 ? lanes / 100 : lanes));
}

function unused(): never {
  throw new Error('nothing is claimed without a store');
}
