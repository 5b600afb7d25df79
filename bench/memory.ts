import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure } from './figure.ts';
import { botSays, type Network } from './network.ts';
import type { Bench } from './pair.ts';
import { cpuMs, residentMb } from './process-figures.ts';

const atOnce = 50;
const passes = 3;

export type MemoryOptions = {
  /** All networks together. */
  readonly chats: number;
  /** Pause after each step, before the memory is read. */
  readonly restMs: number;
  /** For the reader. */
  readonly target: { readonly atRest: string; readonly grown: string };
  /** Reads it once more after a long rest. */
  readonly settles?: boolean;
};

/** V8 returns memory it no longer needs 100 s after its last full collection. */
const settleMs = 120_000;

/** (6) Measures resident memory at rest, after `chats` chats, and after as many further messages in the same chats. */
export async function measureMemory(
  benches: { readonly floor?: Bench; readonly parley: Bench },
  { chats, restMs, target, settles = false }: MemoryOptions,
): Promise<readonly Figure[]> {
  const { floor, parley } = benches;
  const both = floor === undefined ? [parley] : [parley, floor];
  await sleep(restMs);
  const steps = [both.map(({ subject }) => residentMb(subject.pid))];
  const { redisPid } = parley.subject;
  const redis = redisPid === undefined ? 0 : residentMb(redisPid);
  const usedMs = [both.map(({ subject }) => cpuMs(subject.pid))];
  for (let pass = 1; pass <= passes; pass++) {
    await Promise.all(both.map((bench) => talk(bench, { chats, pass })));
    usedMs.push(both.map(({ subject }) => cpuMs(subject.pid)));
    await sleep(restMs);
    steps.push(both.map(({ subject }) => residentMb(subject.pid)));
  }
  const at = (step: number, side: number) => steps[step]?.[side] ?? Number.NaN;
  const row = (name: string, wanted: string, read: (side: number) => number): Figure => ({
    name,
    unit: 'MB',
    ...(floor === undefined ? {} : { floor: read(1) }),
    parley: read(0),
    target: wanted,
  });
  if (settles) {
    await sleep(settleMs);
    steps.push(both.map(({ subject }) => residentMb(subject.pid)));
  }
  const perChat = (side: number) => ((usedMs[1]?.[side] ?? Number.NaN) - (usedMs[0]?.[side] ?? 0)) / chats;
  const count = chats.toLocaleString('en');
  return [
    row('memory at rest', target.atRest, (side) => at(0, side)),
    { name: 'the private Redis at rest', unit: 'MB', parley: redis, target: '' },
    row(`memory after ${count} new chats`, '', (side) => at(1, side)),
    { ...row('processor time per new chat', '', perChat), unit: 'ms' },
    row(`growth over ${count} chats`, target.grown, (side) => at(1, side) - at(0, side)),
    row(`growth over ${count} more messages`, 'flat', (side) => at(2, side) - at(1, side)),
    row(`growth over the next ${count}`, 'flat', (side) => at(3, side) - at(2, side)),
    ...(settles ? [row('memory two minutes later', '≤ 200 MB', (side) => at(passes + 1, side))] : []),
  ];
}

type Pass = { readonly chats: number; readonly pass: number };

async function talk({ networks, model }: Bench, { chats, pass }: Pass): Promise<void> {
  model.answerWith(({ texts }) => ({ text: `Heard: ${texts.at(-1)}` }));
  const each = Math.ceil(chats / networks.length);
  await Promise.all(networks.map((network) => talkOn(network, { chats: each, pass })));
}

async function talkOn(network: Network, { chats, pass }: Pass): Promise<void> {
  for (let first = 0; first < chats; first += atOnce) {
    const answers: Promise<unknown>[] = [];
    for (let chat = first; chat < Math.min(first + atOnce, chats); chat++) {
      const text = `chat ${chat} pass ${pass}.`;
      answers.push(botSays(network, 300_000 + chat, text));
      network.say(300_000 + chat, text);
    }
    await Promise.all(answers);
  }
}
