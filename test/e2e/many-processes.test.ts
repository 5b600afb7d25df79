/**
 * Several processes on one database while things go wrong: workers are killed, Redis is killed and
 * emptied, and every process is restarted in turn. `PARLEY_LONG=1` plays 5,000 messages of 200 people
 * (PROOF_MESSAGES: any number, PROOF_SEED: the same moments again).
 */

import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { shareOf } from '../support/turn.ts';
import { quoted } from './conservation.ts';
import type { Account } from './crowd-report.ts';
import {
  type Installation,
  type InstallationOptions,
  type Member,
  openInstallation,
  type Role,
} from './installation.ts';
import { databaseServer } from './own-database.ts';
import { createRandom } from './random.ts';
import { flushAll } from './redis-faults.ts';
import type { AtEnd } from './stage.ts';
import { answerSlowly, isFollowup, settingsFor, startTalking, type Talk } from './talk.ts';

/** The minimum. */
const messages = Number(process.env.PROOF_MESSAGES ?? (isLong ? 5_000 : 200));
const fewestKills = isLong ? 20 : 3;
const seed = Number(process.env.PROOF_SEED ?? (isLong ? Date.now() % 1e9 : 20_261_121));
const sessions = isLong ? 200 : 40;
const people = Array.from({ length: sessions }, (_, index) => 30_001 + index);
const perSecond = isLong ? 50 : 30;
const front: Role = 'gateway';
const back: Role = 'worker';
const workers = ['worker-1', 'worker-2', 'worker-3'] as const;
type Database = InstallationOptions['database'];
const databases: readonly Database[] = databaseServer === undefined ? ['sqlite'] : ['postgres', 'sqlite'];
/** A normal run kills on one database, and restarts on the other every second day; the long run does both on both. */
const killed = isLong ? databases : databases.slice(0, 1);
const restarted = shareOf([true], 2).length === 0 ? [] : isLong ? databases : databases.slice(-1);

describe.concurrent.each(killed)('one gateway and three workers on %s', (database) => {
  it('keeps order and answers once while workers and Redis are killed', async ({ onTestFinished }) => {
    const random = createRandom(seed);
    const parleys = await anInstallation({ database, random }, onTestFinished);
    await parleys.start('gateway', { role: front });
    const members = new Map<string, Member>();
    for (const name of workers) members.set(name, await parleys.start(name, { role: back }));
    const quiet = new AbortController();
    const talk = talkIn(parleys, { count: 1e6, random, signal: quiet.signal });
    const storm = new AbortController();
    const trouble = troubleRedis(parleys, { random, signal: storm.signal });
    let kills = 0;
    // However fast the machine is: enough was said, workers died often enough, and Redis at least once.
    while (talk.asked.length < messages || kills < fewestKills || trouble.times() === 0) {
      const name = workers[Math.floor(random() * workers.length)] ?? 'worker-1';
      await Promise.all([members.get(name)?.kill(), pause(1000)]);
      kills += 1;
      members.set(name, await parleys.start(name, { role: back }));
    }
    quiet.abort();
    await talk.over;
    storm.abort();
    await trouble.over;
    await parleys.untilAtRest(talk.asked.length, 120_000);
    const account = await accountOf(parleys, talk);
    console.info(
      `${database}, seed ${seed}: ${talk.asked.length} messages of ${sessions} people, ${kills} workers killed, ${trouble.times()} times no Redis or an empty one, ${account.unknown} unknown, ${account.wrong.length} wrong`,
    );
    expect(account.wrong, `seed ${seed}`).toEqual([]);
  }, 900_000);
});

describe.concurrent.each(restarted)('one gateway and two workers on %s', (database) => {
  it('loses and doubles nothing while each process is restarted in turn', async ({ onTestFinished }) => {
    const random = createRandom(seed + 1);
    const parleys = await anInstallation({ database, random }, onTestFinished);
    const roles = { gateway: front, 'worker-1': back, 'worker-2': back } as const;
    const members = new Map<string, Member>();
    for (const [name, role] of Object.entries(roles)) members.set(name, await parleys.start(name, { role }));
    const quiet = new AbortController();
    const talk = talkIn(parleys, { count: 1e6, random, signal: quiet.signal });
    for (let turn = 0; turn < (isLong ? 10 : 1); turn++) {
      for (const [name, role] of Object.entries(roles)) {
        await pause(1000);
        await members.get(name)?.stop();
        members.set(name, await parleys.start(name, { role }));
      }
    }
    await pause(1000);
    quiet.abort();
    await talk.over;
    await parleys.untilAtRest(talk.asked.length, 120_000);
    const { wrong, unknown } = await accountOf(parleys, talk);
    const { longestGapMs, slowestMs } = pausesIn(parleys);
    console.info(
      `${database}: every process restarted under ${talk.asked.length} messages; longest pause between two answers ${longestGapMs} ms, slowest answer ${slowestMs} ms; ${unknown} unknown, ${wrong.length} wrong`,
    );
    expect(wrong, `seed ${seed + 1}`).toEqual([]);
    expect(unknown, 'a planned restart cuts off no send').toBe(0);
  }, 600_000);
});

async function anInstallation(
  { database, random }: { database: Database; random: () => number },
  atEnd: AtEnd,
): Promise<Installation> {
  const parleys = await openInstallation({ config, database }, atEnd);
  parleys.model.script((body) => answerSlowly(body, random));
  return parleys;
}

function talkIn(
  { telegram, onTheWay }: Installation,
  {
    signal = new AbortController().signal,
    ...talking
  }: { count: number; random: () => number; signal?: AbortSignal },
): Talk {
  return startTalking(telegram, { people, perSecond, onTheWay, ...talking, signal });
}

/** Every few seconds Redis is emptied, or killed and started again a moment later. */
function troubleRedis(
  { redis }: Installation,
  { random, signal }: { random: () => number; signal: AbortSignal },
) {
  let times = 0;
  const trouble = async () => {
    while (!signal.aborted) {
      await pause(2000 + random() * 2000, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      if (random() < 0.5) await flushAll(redis.socketPath);
      else {
        await redis.kill();
        await pause(random() * 1000);
        await redis.start();
      }
      times += 1;
    }
  };
  return { times: () => times, over: trouble() };
}

async function accountOf(parleys: Installation, { asked }: Talk): Promise<Account> {
  const account = await parleys.account(asked, isFollowup);
  const rows = await parleys.read(
    quoted(`select sessionId, runId from transcript where runId is not null order by sessionId, position`),
  );
  return { ...account, wrong: [...account.wrong, ...entangled(rows)] };
}

/** Within each session the rows of one run are contiguous: no other run wrote in between. */
function entangled(rows: readonly Readonly<Record<string, unknown>>[]): readonly string[] {
  const over = new Set<unknown>();
  return rows.flatMap(({ runId }, index) => {
    const before = rows[index - 1]?.runId;
    if (before !== undefined && before !== runId) over.add(before);
    return over.has(runId) ? [`run ${runId} wrote beside another`] : [];
  });
}

function pausesIn({ telegram }: Installation) {
  const answeredAt: number[] = [];
  let slowestMs = 0;
  for (const person of people) {
    const messages = telegram.messages(person);
    const said = messages.filter(({ from }) => from?.id === person);
    for (const answer of messages.filter(({ from }) => from?.id !== person)) {
      answeredAt.push(answer.at);
      const question = said.find(({ text }) => answer.text.includes(`${text}.`));
      if (question) slowestMs = Math.max(slowestMs, answer.at - question.at);
    }
  }
  answeredAt.sort((one, other) => one - other);
  const gaps = answeredAt.map((at, index) => at - (answeredAt[index - 1] ?? at));
  return { longestGapMs: Math.max(0, ...gaps), slowestMs };
}

const config = { ...settingsFor(people), lanes: { leaseMs: 2_000, renewMs: 500 } };
