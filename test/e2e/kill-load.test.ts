/**
 * The promise under load: many conversations at once, and kills at random moments. The gateway is started
 * again and again on one data folder, where everything ends with its one outcome.
 * `PARLEY_LONG=1` kills ten times as often.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import type { KillPoint } from '../../src/contracts/probe.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { endsInResult, type WireBody } from '../platforms/anthropic/wire.ts';
import { isLong } from '../support/long-run.ts';
import { countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { inSeconds, isReported, promised, writeSection } from './matrix-report.ts';
import type { Person } from './person.ts';
import { answerQuestion, answerTo, questionOf, shownTwice } from './questions.ts';
import { createRandom } from './random.ts';
import { openStage, type Stage } from './stage.ts';
import { until } from './until.ts';

/** The measurements, one line each. */
const measured: string[] = [];

afterAll(async () => {
  if (isReported()) await writeSection('Under load', measured);
});

test('answers each of 20 messages that were in flight at a kill', async () => {
  const stage = await anyStage({});
  stage.model.script((body) => ({ ...answerQuestion(body), delayMs: 3000 }));
  const people = Array.from({ length: 20 }, (_, index) => stage.person('telegram', 601 + index));
  const asked = people.map((person, index) => ({ person, question: `question-${numbered(index)}` }));
  const first = await stage.start();
  for (const { person, question } of asked) person.says(question);
  await stage.model.waitForRequest(asked.length);
  await first.kill();

  const second = await stage.start();
  const readyAt = performance.now();
  const isAnswered = ({ person }: { readonly person: Person }) => person.standing().length > 0;
  await until(() => asked.every(isAnswered), { what: '20 answers' });
  const lastMs = performance.now() - readyAt;
  await untilAtRest(stage.dataDir, asked.length);
  await second.stop();

  expect(asked.map(({ person }) => person.standing())).toEqual(
    asked.map(({ question }) => [answerTo(question)]),
  );
  expectLawful(
    stage,
    asked.map(({ question }) => question),
  );
  promised('the last of 20 answers', { tookMs: lastMs, withinMs: 5_000 });
  measured.push(
    `- Killed with 20 messages in flight on a model that takes 3 s: 20 of 20 answered, none twice, the last ${inSeconds(lastMs)} after readiness.`,
  );
});

test('starts after a kill at any moment of an earlier start, even the first', async () => {
  const stage = await anyStage({});
  const stepMs = isLong ? 10 : 90;
  let kills = 0;
  for (let killAfterMs = 60; killAfterMs <= 700; killAfterMs += stepMs) {
    kills += 1;
    const parley = await stage.start({ killAfterMs });
    await parley.ended;
  }
  const last = await stage.start();
  const person = stage.person('telegram');
  person.says('question-001');
  await until(() => person.standing().length > 0, { what: 'the answer' });
  await untilAtRest(stage.dataDir, 1);
  await last.stop();
  expect(person.standing()).toEqual([answerTo('question-001')]);
  expectLawful(stage, ['question-001']);
  measured.push(
    `- Killed ${kills} times between 60 and 700 ms after its start, including the folder’s first start: each time it came up and answered.`,
  );
});

/** Where random kills happen, in addition to moments between any two points. */
const points: readonly KillPoint[] = [
  'received',
  'accepted',
  'woken',
  'claimed',
  'taken',
  'model-called',
  'streaming',
  'tool-started',
  'tool-finished',
  'steered',
  'turn-committed',
  'finished',
  'sending',
  'sent-not-marked',
  'marked',
];

/** On a slow machine a life is long, so its messages are limited; otherwise the last life has hundreds to answer. */
const perLife = 24;

test('loses and doubles nothing in ten chats under random kills', async () => {
  const seed = Number(process.env.SOAK_SEED ?? (isLong ? Date.now() % 1e9 : 20_261_120));
  const random = createRandom(seed);
  const chats = Array.from({ length: 10 }, (_, index) => 601 + index);
  const stage = await anyStage(soakConfig(chats.filter(isFollowup)));
  stage.model.script(soakReply);
  const talking = new AbortController();
  const asked: Asked[] = [];
  const kills = isLong ? 60 : 6;
  let lives = 1;
  const mayAsk = () => asked.length < lives * perLife;
  const talks = chats.map((chat) => talk(stage, { chat, asked, random, mayAsk, signal: talking.signal }));
  for (; lives <= kills || asked.length < kills * 3; lives++) await liveAndDie(stage, random);
  talking.abort();
  await Promise.all(talks);

  const last = await stage.start();
  await until(() => stage.telegram.updates.pending.length === 0, { what: 'all is taken in' });
  await untilAtRest(stage.dataDir, asked.length);
  await last.stop();

  expectLawful(
    stage,
    asked.map(({ question }) => question),
  );
  const lost = findUnanswered(stage, asked);
  expect(lost.wrong, `seed ${seed}`).toEqual([]);
  const executed = stage.effects();
  expect(new Set(executed).size, 'a tool that must not repeat was executed once per call').toBe(
    executed.length,
  );
  measured.push(
    `- ${kills} kills at random in ten chats (seed ${seed}): ${asked.length} messages, none lost, none doubled; ${lost.unknown} sends were interrupted and are reported \`unknown\`.`,
  );
}, 300_000);

/** All of one length, so that no question is a prefix of another. */
function numbered(index: number): string {
  return String(index + 1).padStart(3, '0');
}

async function anyStage(config: Readonly<Record<string, unknown>>): Promise<Stage> {
  const stage = await openStage(config);
  stage.model.script(answerQuestion);
  onTestFinished(({ task }) => stage.close({ isKept: task.result?.state === 'fail' }));
  return stage;
}

/** Half of the chats run each message on its own, half steer the active run. */
function isFollowup(chat: number): boolean {
  return chat % 2 === 0;
}

function soakConfig(followups: readonly number[]) {
  const followup = followups.map((chat) => [`telegram:${chat}`, { mode: 'followup' }]);
  return {
    run: { maxAttempts: 20 },
    rateLimit: { perSenderPerMinute: 1000 },
    queue: { dm: { mode: 'steer', cap: 1000 }, conversations: Object.fromEntries(followup) },
  };
}

/** Every other question of the chats in `followup` mode needs a tool first. */
function soakReply(body: WireBody): Reply {
  const question = questionOf(body);
  const hasResult = endsInResult(body);
  if (question.endsWith('-tool') && !hasResult) return { toolCalls: [{ name: 'once' }], delayMs: 50 };
  return { chunks: answerTo(question).match(/.{1,4}/g) ?? [], chunkDelayMs: 20 };
}

type Asked = { readonly chat: number; readonly person: Person; readonly question: string };
type Talk = {
  readonly chat: number;
  readonly asked: Asked[];
  readonly random: () => number;
  /** Says whether this life has room for one more question. */
  mayAsk(): boolean;
  readonly signal: AbortSignal;
};

/** Says one thing after another, whether or not Parley is running. */
async function talk(stage: Stage, { chat, asked, random, mayAsk, signal }: Talk): Promise<void> {
  const person = stage.person('telegram', chat);
  for (let index = 0; !signal.aborted; ) {
    if (mayAsk()) {
      const suffix = isFollowup(chat) && random() < 0.5 ? '-tool' : '';
      const question = `question-${chat}-${numbered(index++)}${suffix}`;
      asked.push({ chat, person, question });
      person.says(question);
    }
    await pause(300 + random() * 900, undefined, { signal }).catch(() => undefined);
  }
}

/** Starts the gateway and kills it at a random point or at a random moment. */
async function liveAndDie(stage: Stage, random: () => number): Promise<void> {
  const point = points[Math.floor(random() * points.length)];
  const isAtPoint = random() < 0.6;
  const killAt = `${point}:${1 + Math.floor(random() * 6)}`;
  const parley = await stage.start(isAtPoint ? { killAt } : {});
  await Promise.race([parley.ended, pause(200 + random() * 1500)]);
  await parley.kill();
}

function expectLawful(stage: Stage, questions: readonly string[]): void {
  expect(findBreaches(stage.dataDir)).toEqual([]);
  expect(shownTwice(stage.model)).toEqual([]);
  expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
  const told = countTold(stage.dataDir, questions);
  expect(questions.filter((_, index) => told[index] !== 1)).toEqual([]);
}

/**
 * Each answer appears once, or at most once if its send was cut off and is reported as `unknown`. A
 * message that steered may have been answered together with its neighbor, by the same run.
 */
function findUnanswered(stage: Stage, asked: readonly Asked[]) {
  const unknown = contentsOf(stage, `select content from outbox where state = 'unknown'`);
  const together = contentsOf(stage, answeredByTheirRun);
  const wrong = asked.flatMap(({ person, chat, question }) => {
    const answer = answerTo(question);
    const times = person.standing().filter((text) => text === answer).length;
    const isExcused = unknown.includes(answer) || (!isFollowup(chat) && together.includes(question));
    return times === 1 || (times === 0 && isExcused) ? [] : [`${question}: answered ${times} times`];
  });
  return { wrong, unknown: unknown.split('\n').length - 1 };
}

const answeredByTheirRun = `select inbox.content from inbox
  where outcome = 'answered' and exists (select 1 from outbox where outbox.runId = inbox.runId
    and purpose = 'reply' and outbox.state in ('sent', 'unknown'))`;

/** One line each, after an empty one. */
function contentsOf({ dataDir }: Stage, sql: string): string {
  return ['', ...readStore(dataDir, sql).map(({ content }) => String(content))].join('\n');
}
