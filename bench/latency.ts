import { setTimeout as sleep } from 'node:timers/promises';
import { createGate } from '../test/platforms/anthropic/gate.ts';
import type { Figure } from './figure.ts';
import type { Bench } from './pair.ts';
import { now } from './platforms.ts';
import { median } from './statistics.ts';

const warmUps = 15;
const modelMs = 1500;
const thinkingMs = 30;

/** (1) update → model request, (2) end of the model's stream → sendMessage. */
export async function measureLatency(
  [floor, parley]: readonly [Bench, Bench],
  rounds: number,
): Promise<readonly Figure[]> {
  const times = { floor: [] as Round[], parley: [] as Round[] };
  for (let round = -warmUps; round < rounds; round++) {
    const found = [await oneRound(floor, round), await oneRound(parley, round)] as const;
    if (round < 0) continue;
    times.floor.push(found[0]);
    times.parley.push(found[1]);
  }
  const middle = (of: keyof Round) => ({
    floor: median(times.floor.map((one) => one[of])),
    parley: median(times.parley.map((one) => one[of])),
  });
  return [
    { name: 'update → model request', unit: 'ms', ...middle('requestMs'), target: '≤ 2 × floor' },
    { name: 'stream end → sendMessage', unit: 'ms', ...middle('replyMs'), target: '≤ 2 × floor' },
  ];
}

type Round = { readonly requestMs: number; readonly replyMs: number };

async function oneRound({ platforms }: Bench, round: number): Promise<Round> {
  const chat = 10_000 + round;
  const text = `round ${round} begins`;
  const gate = createGate();
  platforms.answerWith(() => ({ text: `answer to ${text}`, hold: { gate } }));
  await platforms.untilPolled();
  // What the round before left behind is done by then: commits, sockets, timers.
  await sleep(20);
  const hears = platforms.modelHears(text);
  const saidAt = platforms.say(chat, text);
  const request = await hears;
  await gate.reached;
  await sleep(thinkingMs);
  const reply = platforms.botSays(chat, text);
  const endsAt = now();
  gate.open();
  const { at } = await reply;
  return { requestMs: request.at - saidAt, replyMs: at - endsAt };
}

/** (3) What is added to a model that takes 1.5 s: everything but the model. */
export async function measureAdded(
  benches: readonly [Bench, Bench],
  rounds: number,
): Promise<readonly Figure[]> {
  const added = await Promise.all(benches.map((bench, index) => addedTimes(bench, { rounds, index })));
  const [floor = Number.NaN, parley = Number.NaN] = added.map(median);
  return [{ name: 'added to a model of 1.5 s', unit: 'ms', floor, parley, target: '≤ 2 × floor' }];
}

const spacingMs = 200;

/** The rounds overlap, each in a chat of its own, and the two systems take turns. */
async function addedTimes(
  { platforms }: Bench,
  { rounds, index }: { readonly rounds: number; readonly index: number },
): Promise<readonly number[]> {
  platforms.answerWith(({ texts }) => ({ text: `answer to ${texts.at(-1)}`, delayMs: modelMs }));
  await sleep((index * spacingMs) / 2);
  const pending: Promise<number>[] = [];
  for (let round = 0; round < rounds; round++) {
    const chat = 20_000 + round;
    const text = `slow ${round} begins`;
    const reply = platforms.botSays(chat, text);
    const saidAt = platforms.say(chat, text);
    pending.push(reply.then(({ at }) => at - saidAt - modelMs));
    await sleep(spacingMs);
  }
  return Promise.all(pending);
}
