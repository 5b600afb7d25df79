import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import { createGate } from '../test/platforms/anthropic/gate.ts';
import type { Figure } from './figure.ts';
import { botSays } from './network.ts';
import type { Bench } from './pair.ts';
import { median } from './statistics.ts';

/** (7) Measures a tool result's commit → the model request that contains the message sent meanwhile. */
export async function measureSteer(parley: Bench, rounds: number): Promise<readonly Figure[]> {
  const requestedAt: number[] = [];
  for (let round = 0; round < rounds; round++) requestedAt.push(await oneRound(parley, round));
  await sleep(300);
  const committedAt = readCommits(join(parley.subject.home, 'data', 'parley.db'));
  const times = requestedAt.map((at, round) => at - (committedAt[round] ?? Number.NaN));
  return [
    { name: 'tool result → request with the steer', unit: 'ms', parley: median(times), target: '≤ 15 ms' },
  ];
}

async function oneRound({ networks: [network], model }: Bench, round: number): Promise<number> {
  const person = 40_000 + round;
  const gate = createGate();
  const isSteered = ({ texts }: { readonly texts: readonly string[] }) =>
    texts.some((text) => text.includes('by the way'));
  model.answerWith((call) =>
    isSteered(call)
      ? { text: `done ${round}` }
      : // Held after its first word; before that, a new message makes the run ask the model again.
        { text: 'let me see', toolCalls: [{ name: 'list', input: {} }], hold: { gate, afterChunks: 1 } },
  );
  network.say(person, `look, ${round}`);
  await gate.reached;
  network.say(person, `by the way, ${round}`);
  await network.untilQuiet();
  await sleep(20);
  const hears = model.hears(`by the way, ${round}`);
  const done = botSays(network, person, `done ${round}`);
  gate.open();
  const { at } = await hears;
  await done;
  return at;
}

/** Returns the database's time when each result was stored, whole ms, in order. */
function readCommits(file: string): readonly number[] {
  const database = new BetterSqlite3(file, { readonly: true });
  try {
    const rows = database.prepare('select "endedAt" from "toolCalls" order by "endedAt"').all();
    return (rows as readonly { readonly endedAt: number }[]).map((row) => row.endedAt);
  } finally {
    database.close();
  }
}
