import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import { createGate } from '../test/platforms/anthropic/gate.ts';
import type { Figure } from './figure.ts';
import type { Bench } from './pair.ts';
import { median } from './statistics.ts';

/** (7) From the commit of a tool's result to the model request that holds what was sent meanwhile. */
export async function measureSteer(
  { subject, platforms }: Bench,
  rounds: number,
): Promise<readonly Figure[]> {
  const requestedAt: number[] = [];
  for (let round = 0; round < rounds; round++)
    requestedAt.push(await oneRound({ subject, platforms }, round));
  await sleep(300);
  const committedAt = readCommits(join(subject.home, 'data', 'parley.db'));
  const times = requestedAt.map((at, round) => at - (committedAt[round] ?? Number.NaN));
  return [
    { name: 'tool result → request with the steer', unit: 'ms', parley: median(times), target: '≤ 15 ms' },
  ];
}

async function oneRound({ platforms }: Bench, round: number): Promise<number> {
  const chat = 40_000 + round;
  const gate = createGate();
  const isSteered = ({ texts }: { readonly texts: readonly string[] }) =>
    texts.some((text) => text.includes('by the way'));
  platforms.answerWith((call) =>
    isSteered(call)
      ? { text: `done ${round}` }
      : { text: 'let me see', toolCalls: [{ name: 'list', input: {} }], hold: { gate } },
  );
  platforms.say(chat, `look, ${round}`);
  await gate.reached;
  platforms.say(chat, `by the way, ${round}`);
  await platforms.untilPolled();
  await sleep(20);
  const hears = platforms.modelHears(`by the way, ${round}`);
  const done = platforms.botSays(chat, `done ${round}`);
  gate.open();
  const { at } = await hears;
  await done;
  return at;
}

/** The database's clock when each result was stored, whole ms, in order. */
function readCommits(file: string): readonly number[] {
  const database = new BetterSqlite3(file, { readonly: true });
  try {
    const rows = database.prepare('select "endedAt" from "toolCalls" order by "endedAt"').all();
    return (rows as readonly { readonly endedAt: number }[]).map((row) => row.endedAt);
  } finally {
    database.close();
  }
}
