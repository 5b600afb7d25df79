import { setTimeout as sleep } from 'node:timers/promises';
import { createGate } from '../test/platforms/anthropic/gate.ts';
import { now } from './clock.ts';
import type { Figure } from './figure.ts';
import { botSays } from './network.ts';
import type { Bench, Both } from './pair.ts';
import { median } from './statistics.ts';

const warmUps = 15;
/** People who write repeatedly, since a stranger's first message may make a channel read the network's history. */
const regulars = 10;
const modelMs = 1500;
const thinkingMs = 30;

/** Measures (1) update → model request, (2) end of the model's stream → send. */
export function measureLatency(both: Both, rounds: number): Promise<readonly Figure[]> {
  const personOf = (round: number) => 10_000 + ((round + warmUps) % regulars);
  return measureRounds(both, {
    rounds,
    restMs: 20,
    personOf,
    target: { in: '≤ 2 × floor', out: '≤ 2 × floor' },
  });
}

/** Measures the same in one conversation with a pause before each message, as people write; it is hardest on caches. */
export function measurePaced(both: Both, rounds: number): Promise<readonly Figure[]> {
  const target = { in: '≤ 1.7 × floor', out: '≤ 2.2 × floor' };
  return measureRounds(both, { rounds, restMs: 200, personOf: () => 15_000, target });
}

type Rounds = {
  readonly rounds: number;
  /** Pause before each message, by which the previous one's remaining work is done: commits, sockets, timers. */
  readonly restMs: number;
  personOf(round: number): number;
  readonly target: { readonly in: string; readonly out: string };
};

async function measureRounds(
  [floor, parley]: Both,
  { rounds, restMs, personOf, target }: Rounds,
): Promise<readonly Figure[]> {
  const times = { floor: [] as Round[], parley: [] as Round[] };
  for (let round = -warmUps; round < rounds; round++) {
    const saying = { person: personOf(round), text: `round ${round} begins`, restMs };
    const found = [await oneRound(floor, saying), await oneRound(parley, saying)] as const;
    if (round < 0) continue;
    times.floor.push(found[0]);
    times.parley.push(found[1]);
  }
  const middle = (of: keyof Round) => ({
    floor: median(times.floor.map((one) => one[of])),
    parley: median(times.parley.map((one) => one[of])),
  });
  return [
    { name: 'update → model request', unit: 'ms', ...middle('requestMs'), target: target.in },
    { name: 'stream end → send', unit: 'ms', ...middle('replyMs'), target: target.out },
  ];
}

type Round = { readonly requestMs: number; readonly replyMs: number };

type Saying = Pick<Rounds, 'restMs'> & { readonly person: number; readonly text: string };

async function oneRound(
  { networks: [network], model }: Bench,
  { person, text, restMs }: Saying,
): Promise<Round> {
  const gate = createGate();
  model.answerWith(() => ({ text: `answer to ${text}`, hold: { gate } }));
  await network.untilQuiet();
  await sleep(restMs);
  const hears = model.hears(text);
  const saidAt = network.say(person, text);
  const request = await hears;
  await gate.reached;
  await sleep(thinkingMs);
  const reply = botSays(network, person, text);
  const endsAt = now();
  gate.open();
  const { at } = await reply;
  return { requestMs: request.at - saidAt, replyMs: at - endsAt };
}

/** (3) Measures the time added to a model that takes 1.5 s: everything except the model. */
export async function measureAdded(benches: Both, rounds: number): Promise<readonly Figure[]> {
  const added = await Promise.all(benches.map((bench, index) => addedTimes(bench, { rounds, index })));
  const [floor = Number.NaN, parley = Number.NaN] = added.map(median);
  return [{ name: 'added to a 1.5 s model call', unit: 'ms', floor, parley, target: '≤ 2 × floor' }];
}

const spacingMs = 200;

/** Runs overlapping rounds, each in its own chat, alternating between the two systems. */
async function addedTimes(
  { networks: [network], model }: Bench,
  { rounds, index }: { readonly rounds: number; readonly index: number },
): Promise<readonly number[]> {
  model.answerWith(({ texts }) => ({ text: `answer to ${texts.at(-1)}`, delayMs: modelMs }));
  await sleep((index * spacingMs) / 2);
  const pending: Promise<number>[] = [];
  for (let round = 0; round < rounds; round++) {
    const person = 20_000 + round;
    const text = `slow ${round} begins`;
    const reply = botSays(network, person, text);
    const saidAt = network.say(person, text);
    pending.push(reply.then(({ at }) => at - saidAt - modelMs));
    await sleep(spacingMs);
  }
  return Promise.all(pending);
}
