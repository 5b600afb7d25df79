/**
 * Many people and many kills on one data folder, and then the full report.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import type { KillPoint } from '../../src/contracts/probe.ts';
import { readStore, untilAtRest } from './conservation.ts';
import { type Account, type Asked, checkCrowd } from './crowd-report.ts';
import type { ParleyProcess } from './parley-process.ts';
import { createRandom } from './random.ts';
import { openStage, type Stage } from './stage.ts';
import { answerSlowly, gatherAskers, isFollowup, maxAttempts, settingsFor } from './talk.ts';
import { until } from './until.ts';

export type KillRound = {
  readonly kills: number;
  readonly messages: number;
  readonly seed: number;
};

export type KillReport = Account & {
  readonly messages: number;
  readonly kills: number;
  /** Kills at a named point in the code; the others came at a random moment. */
  readonly atPoints: number;
};

/** Where kills happen, in addition to moments between any two points. */
const points: readonly KillPoint[] = [
  ...(['received', 'accepted', 'woken', 'claimed', 'taken', 'model-called', 'streaming'] as const),
  ...(['tool-started', 'tool-finished', 'steered', 'turn-committed', 'finished'] as const),
  ...(['sending', 'sent-not-marked', 'marked'] as const),
];

/** Messages per person, limited so that no request grows long. */
const perPerson = 20;
/** Messages said and not answered yet, at most. */
const inFlight = 50;

export async function playKillRound({ kills, messages, seed }: KillRound): Promise<KillReport> {
  const random = createRandom(seed);
  const people = Array.from({ length: Math.ceil(messages / perPerson) }, (_, index) => 10_001 + index);
  const stage = await openStage({ config: { ...settingsFor(people), logLevel: 'warn', replies: {} } });
  let isDone = false;
  try {
    stage.model.script((body) => ({ ...answerSlowly(body, random, [0, 100]), chunkDelayMs: 5 }));
    const crowd = createCrowd(stage, { people, messages, random });
    let atPoints = 0;
    for (let kill = 0; kill < kills; kill++) {
      // Each life gets a share of the messages, so that the last kill finds the last of them in progress.
      const share = Math.ceil(((messages - crowd.said()) / (kills - kill)) * 2 * random());
      const [point = 'taken'] = points.slice(Math.floor(random() * points.length));
      const nth = 1 + Math.floor(random() * Math.min(share, 60));
      const isAtPoint = random() < 0.5;
      const parley = await stage.start(isAtPoint ? { killAt: `${point}:${nth}` } : {});
      if (await liveOn(parley, crowd, share)) atPoints += 1;
      await parley.kill();
    }
    const last = await stage.start();
    await crowd.speaks(messages - crowd.said(), new AbortController().signal);
    await until(() => stage.telegram.updates.pending.length === 0, { what: 'all is taken in' });
    await untilAtRest(stage.dataDir, messages, 120_000);
    await last.stop();
    addIndexes(stage.dataDir);
    const account = await checkCrowd({
      ...{ telegram: stage.telegram, model: stage.model, asked: crowd.asked },
      read: async (sql) => readStore(stage.dataDir, sql),
      effects: stage.effects(),
      isFollowup,
      ...(kills > maxAttempts && { maxAttempts }),
    });
    const report = { ...account, messages: crowd.said(), kills, atPoints };
    isDone = report.wrong.length === 0;
    return report;
  } catch (error) {
    throw new Error(`seed ${seed}; see ${stage.dataDir}/test.log`, { cause: error });
  } finally {
    await stage.close({ isKept: !isDone });
  }
}

/** People say `share` more while it lives, so some work is in progress when it dies. True if it died on its own. */
async function liveOn(parley: ParleyProcess, crowd: Crowd, share: number): Promise<boolean> {
  const over = new AbortController();
  const died = parley.ended.then(() => over.abort());
  await Promise.race([died, crowd.speaks(share, over.signal)]);
  const isDead = over.signal.aborted;
  over.abort();
  return isDead;
}

type Crowd = {
  readonly asked: readonly Asked[];
  said(): number;
  /** Says `count` more, never with more than a few unanswered; ends early with the signal. */
  speaks(count: number, signal: AbortSignal): Promise<void>;
};

function createCrowd(
  { telegram }: Stage,
  { people, messages, random }: { people: readonly number[]; messages: number; random: () => number },
): Crowd {
  const { asked, say } = gatherAskers(telegram, { people, random });
  return {
    asked,
    said: () => asked.length,
    speaks: async (count, signal) => {
      const goal = Math.min(messages, asked.length + count);
      // Messages that were cut off before aren't counted, because they may stay `unknown` forever.
      const before = { asked: asked.length, calls: telegram.calls.length };
      const sent = { seen: before.calls, count: 0 };
      while (asked.length < goal && !signal.aborted) {
        for (; sent.seen < telegram.calls.length; sent.seen++)
          if (telegram.calls[sent.seen]?.method === 'sendMessage') sent.count += 1;
        const isHeard = telegram.updates.pending.length < inFlight;
        while (isHeard && asked.length < goal && asked.length - before.asked - sent.count < inFlight) say();
        await pause(5);
      }
    },
  };
}

/** The checks look rows up by columns that the running program never searches by. */
function addIndexes(dataDir: string): void {
  const db = new BetterSqlite3(join(dataDir, 'parley.db'));
  db.exec(`create index proof_transcript on inbox (transcriptId);
    create index proof_ledger on ledger (inboxId); create index proof_run on inbox (runId);`);
  db.close();
}
