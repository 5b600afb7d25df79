import { expect, it } from 'vitest';
import { titleLaneOf } from '../../src/store/lanes/titles.ts';
import { aLane, aMessage, aWorker, demoOnly } from '../store/builders.ts';
import { counted } from '../store/call-builders.ts';
import { aStore } from '../support/own-store.ts';
import { runParley } from './run-parley.ts';

it('lists conversations by title and shows one with its costs', async () => {
  const { store, dataDir } = await aStore();
  const sessions = (...args: string[]) => runParley(['sessions', ...args], { PARLEY_DATA_DIR: dataDir });
  expect((await sessions('list')).stdout).toBe('No conversations yet.\n');

  const worker = aWorker(store, undefined, undefined, demoOnly);
  await worker.accept(aMessage({ conversation: 'one', text: 'Which boats are green?' }));
  const run = await worker.claimRun(aLane('one').key);
  await worker.answer(run, 'Mine.', { modelCalls: [counted(run)] });
  const line = (name: string, cost: string) =>
    new RegExp(
      `^${run.sessionId}  \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d  ${name}  ann on test \\(test:ann\\), agent main, messages: 2, tokens: 150, cost \\$${cost}\n`,
    );
  expect((await sessions('list')).stdout).toMatch(line(run.laneKey, '0.0001'));
  await worker.answer(await worker.claimRun(titleLaneOf(run.sessionId)), 'Green boats', { parts: [] });
  const shown = (await sessions('show', run.sessionId.slice(0, 8))).stdout;
  expect(shown).toMatch(line('“Green boats”', '0.0001'));
  expect(shown).toContain('  turn: calls 1, tokens 120 in, 30 out, cost $0.0001');
  const [listed] = JSON.parse((await sessions('list', '--json')).stdout);
  expect(listed).toMatchObject({ title: 'Green boats', tokens: { prompt: 120, completion: 30 } });
  expect((await sessions('export', run.laneKey)).stdout).toMatch(
    /“Green boats”[\s\S]*\n\S+ \d\d:\d\d:\d\d {2}user: Which boats are green\?\n\S+ \d\d:\d\d:\d\d {2}assistant: Mine\.\n$/,
  );
  expect((await sessions('show', 'nobody')).stderr).toBe(
    "nobody isn't a conversation. See: ./bin/parley.mjs sessions list\n",
  );
});

it('exports every message of a long conversation once and in order', async () => {
  const { store, dataDir } = await aStore();
  const worker = aWorker(store);
  const texts = Array.from({ length: 101 }, (_, n) => `question ${n}`);
  for (const text of texts) {
    await worker.accept(aMessage({ conversation: 'long', text }));
    await worker.answer(await worker.claimRun(aLane('long').key), `answer to ${text}`);
  }
  const args = ['sessions', 'export', aLane('long').key, '--json'];
  const { messages, key } = JSON.parse((await runParley(args, { PARLEY_DATA_DIR: dataDir })).stdout);
  expect(key).toBe(aLane('long').key);
  expect(messages.map(textOf)).toEqual(texts.flatMap((text) => [text, `answer to ${text}`]));
});

const textOf = ({ parts }: { parts: { type: string; data: { text: string } }[] }) =>
  parts.flatMap(({ type, data }) => (type === 'text' ? [data.text] : [])).join('');
