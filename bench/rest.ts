import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure } from './figure.ts';
import { botSays } from './network.ts';
import type { Bench } from './pair.ts';
import { exactCpuMs } from './process-figures.ts';

/** After the last message: until then the process frees memory and stores compiled code, ms. */
const settleMs = 15_000;

/** Measures the share of one processor that an idle process uses after its first message. */
export async function measureRest(
  { subject, networks: [network] }: Bench,
  restMs: number,
): Promise<readonly Figure[]> {
  const said = botSays(network, 1, 'hello');
  network.say(1, 'hello');
  await said;
  await sleep(settleMs);
  const pids = [subject.pid, ...(subject.redisPid === undefined ? [] : [subject.redisPid])];
  const before = pids.map(exactCpuMs);
  await sleep(restMs);
  const [parley = 0, redis = 0] = pids.map((pid, index) => (exactCpuMs(pid) - (before[index] ?? 0)) / restMs);
  return [
    { name: 'processor at rest', unit: '%', parley: 100 * parley, target: '≤ 0.2 %' },
    { name: 'the private Redis at rest', unit: '%', parley: 100 * redis, target: '' },
  ];
}
