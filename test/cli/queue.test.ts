import { expect, it } from 'vitest';
import { readQueuedItems } from '../../src/store/reads/read-waiting-items.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aStore } from '../support/own-store.ts';
import { runParley } from './run-parley.ts';

it('lists, rewords, cancels and promotes waiting messages of all conversations', async () => {
  const { store, dataDir } = await aStore();
  const queue = (...args: string[]) => runParley(['queue', ...args], { PARLEY_DATA_DIR: dataDir });
  expect(await queue('list')).toMatchObject({ code: 0, stdout: 'Nothing is waiting.\n' });
  expect(JSON.parse((await queue('list', '--json')).stdout)).toEqual([]);

  const { worker, saying, lane, answer } = aConversation(store, {
    settings: { mode: 'followup', quietMs: 0 },
  });
  for (const text of ['first \u001b[2J', 'second', 'third']) await worker.accept(saying(text));
  const waiting = () => store.read(readQueuedItems, { limit: 10 });
  const [first, second, third] = await waiting();
  const { stdout } = await queue('list');
  const place = (item: typeof first, position: number) =>
    `${item?.id}  ${lane.key}  position ${position}, followup  #${item?.number} ann, `;
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(/ \d+ s: “first ”$/),
    expect.stringContaining(place(second, 2)),
    expect.stringContaining(place(third, 3)),
    '',
  ]);
  expect(JSON.parse((await queue('list', '--json')).stdout)).toMatchObject([
    { id: first?.id, laneKey: lane.key, position: 1, mode: 'followup', sender: 'test:ann', number: 1 },
    { excerpt: 'second' },
    { excerpt: 'third' },
  ]);

  expect(await queue('edit', String(second?.id), ' other words ')).toMatchObject({
    ...{ code: 0, stdout: `#${second?.number} now reads: “other words”\n` },
  });
  expect(await queue('promote', String(third?.id))).toMatchObject({
    ...{ code: 0, stdout: `#${third?.number} comes next: “third”\n` },
  });
  const cancelled = await queue('cancel', String(second?.id).toUpperCase(), '--json');
  expect(JSON.parse(cancelled.stdout)).toEqual({
    ...{ id: second?.id, laneKey: lane.key, number: second?.number, excerpt: 'other words' },
  });
  expect((await waiting()).map(({ excerpt }) => excerpt.slice(0, 5))).toEqual(['third', 'first']);

  const refused = [
    ['cancel', String(second?.id)],
    ['cancel', 'nobody'],
    ['edit', String(first?.id), ' '],
  ];
  expect(await Promise.all(refused.map((args) => queue(...args)))).toMatchObject([
    { code: 1, stdout: '', stderr: `#${second?.number} is no longer waiting: cancelled.\n` },
    { code: 1, stderr: "nobody isn't a waiting message. See: ./bin/parley.mjs queue list\n" },
    { code: 1, stderr: 'The new text is empty.\n' },
  ]);
  const run = await worker.claimRun(lane.key);
  expect(await queue('promote', String(third?.id))).toMatchObject({
    ...{ code: 1, stderr: `I’m already working on #${third?.number}.\n` },
  });
  const corrected = await queue('edit', String(third?.id), 'third, please', '--json');
  expect(JSON.parse(corrected.stdout)).toEqual({
    ...{ id: third?.id, laneKey: lane.key, number: third?.number, isCorrection: true },
  });
  expect(await waiting()).toContainEqual(
    expect.objectContaining({ kind: 'correction', excerpt: 'third, please', sender: 'test:ann' }),
  );
  await answer(run, 'done');
});
