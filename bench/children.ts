import type { Reply } from '../test/platforms/anthropic/turn.ts';
import { now } from './clock.ts';
import type { Figure } from './figure.ts';
import { botSays } from './network.ts';
import type { Bench } from './pair.ts';
import { median } from './statistics.ts';

/** (12) From the model's call to the sub-agent's first request, beside what a person's message takes to its own. */
export async function measureChildren(parley: Bench, rounds: number): Promise<readonly Figure[]> {
  const inbound: number[] = [];
  const spawned: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { inboundMs, spawnMs } = await oneRound(parley, round);
    inbound.push(inboundMs);
    spawned.push(spawnMs);
  }
  const [ordinary, child] = [median(inbound), median(spawned)];
  return [
    { name: 'message → its model request', unit: 'ms', parley: ordinary, target: '' },
    { name: 'spawn → first request of the sub-agent', unit: 'ms', parley: child, target: '' },
    { name: 'the second over the first', unit: '×', parley: child / ordinary, target: '≤ 3 ×' },
  ];
}

async function oneRound({ networks: [network], model }: Bench, round: number) {
  const person = 60_000 + round;
  let askedAt: number | undefined;
  model.answerWith(({ texts }): Reply => {
    const last = texts.at(-1) ?? '';
    if (last === `part ${round}`) return { text: 'The part.' };
    if (last.includes('Sub-agent')) return { text: 'ANNOUNCE_SKIP' };
    if (askedAt !== undefined) return { text: `done ${round}` };
    askedAt = now();
    return { toolCalls: [{ name: 'sessions_spawn', input: { task: `part ${round}` } }] };
  });
  const heard = model.hears(`spawn ${round}`);
  const child = model.hears(`part ${round}`);
  const done = botSays(network, person, `done ${round}`);
  const sentAt = now();
  network.say(person, `spawn ${round}`);
  const [{ at: heardAt }, { at: childAt }] = await Promise.all([heard, child, done]);
  return { inboundMs: heardAt - sentAt, spawnMs: childAt - (askedAt ?? Number.NaN) };
}
