import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure } from './figure.ts';
import type { Bench } from './pair.ts';
import { residentMb } from './process-figures.ts';

const chats = 1000;
const atOnce = 50;
const restMs = 5000;

/** (6) Resident memory at rest, after 1,000 chats, and after 1,000 messages more in the same chats. */
export async function measureMemory({ subject, platforms }: Bench): Promise<readonly Figure[]> {
  const { pid, redisPid } = subject;
  await sleep(restMs);
  const atRest = residentMb(pid);
  const redis = redisPid === undefined ? 0 : residentMb(redisPid);
  const after: number[] = [];
  for (let pass = 1; pass <= 3; pass++) {
    await talk({ subject, platforms }, pass);
    await sleep(restMs);
    after.push(residentMb(pid));
  }
  const [first = 0, second = 0, third = 0] = after;
  return [
    { name: 'memory at rest', unit: 'MB', parley: atRest, target: '≤ 145 MB' },
    { name: 'the private Redis at rest', unit: 'MB', parley: redis, target: '' },
    { name: 'more after 1,000 chats', unit: 'MB', parley: first - atRest, target: '≤ 120 MB' },
    { name: 'more after 1,000 messages again', unit: 'MB', parley: second - first, target: 'flat' },
    { name: 'and again', unit: 'MB', parley: third - second, target: 'flat' },
  ];
}

async function talk({ platforms }: Bench, pass: number): Promise<void> {
  platforms.answerWith(({ texts }) => ({ text: `Heard: ${texts.at(-1)}` }));
  for (let first = 0; first < chats; first += atOnce) {
    const answers: Promise<unknown>[] = [];
    for (let chat = first; chat < first + atOnce; chat++) {
      const text = `chat ${chat} pass ${pass}.`;
      answers.push(platforms.botSays(300_000 + chat, text));
      platforms.say(300_000 + chat, text);
    }
    await Promise.all(answers);
  }
}
