/** A conversation gets its title from a run alongside it, which nothing awaits and a kill doesn't double. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import { aFolder } from '../support/own-folder.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { answerQuestion, answerTo } from './questions.ts';
import { openStage } from './stage.ts';
import { until } from './until.ts';

/** Its SDK takes memory and start time, which costs nothing unless the model is used. */
const unusedModel = {
  providers: { house: { baseUrl: 'http://127.0.0.1:9/v1' } },
  models: { spare: { provider: 'house', id: 'qwen3' } },
};

test("names a conversation once, even after a kill during the title; OpenAI's SDK stays unloaded", async () => {
  const folder = aFolder();
  const sdks = join(folder, 'sdks');
  const recorder = new URL('../support/record-sdks.mjs', import.meta.url);
  recorder.searchParams.set('file', sdks);
  const env = { TEST_TITLES: '1', NODE_OPTIONS: `--import=${recorder.href}` };
  const stage = await openStage({ config: unusedModel, env }, onTestFinished);
  let gate: ReturnType<typeof createGate> | undefined = createGate();
  stage.model.script((body) => {
    if (!isNaming(body)) return answerQuestion(body);
    return { text: 'Boats and their colours', ...(gate && { hold: { gate } }) };
  });
  const first = await stage.start();
  const person = stage.person('telegram');
  person.says('question-1');
  await gate.reached;
  await until(() => person.standing().length === 1, { what: 'the answer, while the title is awaited' });
  await first.kill();
  gate = undefined;
  await stage.start();
  person.says('question-2');
  await until(() => person.standing().length === 2, { what: 'the second answer' });
  await untilAtRest(stage.dataDir, 2);
  expect(person.standing()).toEqual([answerTo('question-1'), answerTo('question-2')]);
  const titles = `select title, cost > 0 as hasCost from sessions where id not like 'title-%'`;
  expect(readStore(stage.dataDir, titles)).toEqual([{ title: 'Boats and their colours', hasCost: 1 }]);
  expect(readStore(stage.dataDir, `select attempts, endReason from runs where kind = 'title'`)).toEqual([
    { attempts: 2, endReason: 'natural' },
  ]);
  const calls = `select state from modelCalls where purpose = 'title' order by openedAt`;
  expect(readStore(stage.dataDir, calls)).toEqual([{ state: 'unknown' }, { state: 'settled' }]);
  expect(findBreaches(stage.dataDir)).toEqual([]);
  const [naming] = stage.model.requests.filter(({ body }) => isNaming(body));
  expect(naming?.body.tools ?? []).toEqual([]);
  expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
  const loaded = (await readFile(sdks, 'utf8')).trim().split('\n');
  expect(new Set(loaded)).toEqual(new Set(['@anthropic-ai/sdk']));
});

function isNaming({ system }: WireBody): boolean {
  return JSON.stringify(system ?? '').includes('You name conversations.');
}
