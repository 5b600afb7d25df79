import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { answerAll, effectsFile, settlementsFile } from './asking-tool.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { answerQuestion, answerTo, questionsIn } from './questions.ts';
import { openStage } from './stage.ts';
import { until } from './until.ts';

/** Two people can be worked for at a time; four wait for an approval. */
const concurrency = 2;
const waiting = 4;

test('answers others while runs wait for an approval, and those once after a restart', {
  timeout: 300_000,
}, async () => {
  const stage = await openStage(
    { config: { lanes: { concurrency: { main: concurrency } } } },
    onTestFinished,
  );
  const effects = effectsFile(stage.home);
  stage.model.script((body) => (asks(body) ? { toolCalls: [{ name: 'ask' }] } : answerQuestion(body)));
  const first = await stage.start();
  const people = Array.from({ length: waiting }, (_, index) => stage.person('telegram', 501 + index));
  for (const [index, person] of people.entries()) person.says(`Please ask about question-${index}`);
  const parked = () => readStore(stage.dataDir, 'select id from runs where parkedAt is not null').length;
  await until(() => parked() === waiting, { what: 'all of them are parked' });

  const other = stage.person('telegram', 601);
  other.says('question-of-another');
  await until(() => other.standing().length === 1, { what: 'another person is answered meanwhile' });
  people[0]?.says('question-0-more');
  await until(() => people[0]?.isHeard() === true, { what: 'the second message is taken in' });
  await first.stop();
  expect(parked()).toBe(waiting);

  await stage.start();
  other.says('question-behind-the-restart');
  await until(() => other.standing().length === 2, { what: 'and after the restart' });
  expect(parked()).toBe(waiting);
  answerAll(effects, 'approved');
  await until(() => people.every((person) => person.standing().length > 0), { what: 'all are answered' });
  await untilAtRest(stage.dataDir, waiting + 3);

  const expected = people.map((_, index) => [
    answerTo(index === 0 ? 'question-0-more' : `question-${index}`),
  ]);
  expect(people.map((person) => person.standing())).toEqual(expected);
  expect(stage.effects()).toHaveLength(waiting);
  expect(readFileSync(settlementsFile(effects), 'utf8').trim().split('\n').map(outcomeOf)).toEqual(
    people.map(() => 'settled'),
  );
  expect(findBreaches(stage.dataDir)).toEqual([]);
  expect(readStore(stage.dataDir, 'select id from runs where attempts > 1')).toEqual([]);
  const refusals = stage.model.requests.flatMap(({ refusal }) => refusal ?? []);
  expect(refusals).toEqual([]);
});

test('ends a run that waits for an approval on /stop, and answers the next message', async () => {
  const stage = await openStage({}, onTestFinished);
  stage.model.script((body) => (asks(body) ? { toolCalls: [{ name: 'ask' }] } : answerQuestion(body)));
  await stage.start();
  const person = stage.person('telegram');
  person.says('Please ask about question-1');
  const runs = (where: string) => readStore(stage.dataDir, `select id from runs where ${where}`).length;
  await until(() => runs('parkedAt is not null') === 1, { what: 'it is parked' });
  person.says('/stop');
  await until(() => runs(`state = 'finished'`) === 1, { what: 'it is over' });
  answerAll(effectsFile(stage.home), 'approved');
  person.says('question-2');
  await until(() => person.standing().includes(answerTo('question-2')), { what: 'the next answer' });
  await untilAtRest(stage.dataDir, 2);
  expect(readStore(stage.dataDir, 'select outcome from inbox order by seq')).toEqual([
    { outcome: 'cancelled' },
    { outcome: 'answered' },
  ]);
  const [call] = readStore(stage.dataDir, 'select result from toolCalls');
  expect(call?.result).toContain('cancelled by user');
  expect(findBreaches(stage.dataDir)).toEqual([]);
});

/** Says whether a message wants an approval and hasn't got one yet. */
function asks(body: WireBody): boolean {
  const hasResult = body.messages.flatMap(blocksOf).some((block) => block.type === 'tool_result');
  const wants = body.messages.flatMap(blocksOf).some((block) => block.text?.includes('Please ask') === true);
  return wants && !hasResult && questionsIn(body).length > 0;
}

function outcomeOf(line: string): string {
  return line.split(' ')[1] ?? '';
}
