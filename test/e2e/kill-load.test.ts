/**
 * The promise under load: many conversations at once, and kills at random moments. The gateway is started
 * again and again on one data folder, where everything ends with its one outcome.
 * `PARLEY_LONG=1` kills ten times as often.
 */

import { afterAll, describe, expect, type TestContext, test } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { turn } from '../support/turn.ts';
import { countTold, findBreaches, untilAtRest } from './conservation.ts';
import { playKillRound } from './kill-round.ts';
import { inSeconds, isReported, promised, writeSection } from './matrix-report.ts';
import type { Person } from './person.ts';
import { answerQuestion, answerTo, shownTwice } from './questions.ts';
import { openStage, type Stage } from './stage.ts';
import { until } from './until.ts';

/** The measurements, one line each. */
const measured: string[] = [];

afterAll(async () => {
  if (isReported()) await writeSection('Under load', measured);
});

// One after the other where times are measured.
describe('kill -9 under load', { concurrent: !isReported() }, () => {
  test('answers each of 20 messages that were in flight at a kill', async (context) => {
    const stage = await anyStage(context);
    // Only the time of the second life is measured.
    const delayMs = (count: number) => (count <= 20 || isReported() ? 3000 : 0);
    stage.model.script((body, count) => ({ ...answerQuestion(body), delayMs: delayMs(count) }));
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

  test('starts after a kill at any moment of an earlier start, even the first', async (context) => {
    const stage = await anyStage(context);
    // Each day kills at other moments, between those of the day before.
    const [stepMs, firstMs] = isLong ? [10, 60] : [150, 60 + 50 * (turn % 3)];
    let kills = 0;
    for (let killAfterMs = firstMs; killAfterMs <= 700; killAfterMs += stepMs) {
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

  test('loses, doubles and reorders nothing when killed while many people write', {
    timeout: isLong ? 3_600_000 : 300_000,
  }, async () => {
    const seed = Number(process.env.PROOF_SEED ?? (isLong ? Date.now() % 1e9 : 20_261_121));
    const [kills, messages] = isLong ? [60, 3_000] : [5, 200];
    const { wrong, unknown, givenUp, ...report } = await playKillRound({ kills, messages, seed });
    expect(wrong, `seed ${seed}`).toEqual([]);
    expect(report.messages).toBe(messages);
    measured.push(
      `- ${kills} kills at random while ${messages / 20} people write (seed ${seed}): ${messages} messages, none lost, none doubled; ${unknown} sends were interrupted and are reported \`unknown\`, ${givenUp} messages given up after 20 interruptions, which their senders were told.`,
    );
  });
});

/** All of one length, so that no question is a prefix of another. */
function numbered(index: number): string {
  return String(index + 1).padStart(3, '0');
}

async function anyStage({ onTestFinished }: TestContext): Promise<Stage> {
  const stage = await openStage();
  stage.model.script(answerQuestion);
  onTestFinished(({ task }) => stage.close({ isKept: task.result?.state === 'fail' }));
  return stage;
}

function expectLawful(stage: Stage, questions: readonly string[]): void {
  expect(findBreaches(stage.dataDir)).toEqual([]);
  expect(shownTwice(stage.model)).toEqual([]);
  expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
  const told = countTold(stage.dataDir, questions);
  expect(questions.filter((_, index) => told[index] !== 1)).toEqual([]);
}
