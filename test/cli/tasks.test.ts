import { expect, it } from 'vitest';
import { settleTask } from '../../src/store/delegation/settle-task.ts';
import { readWaitingItems } from '../../src/store/reads/read-waiting-items.ts';
import { aCoordinator } from '../store/delegation/a-coordinator.ts';
import { aStore } from '../support/own-store.ts';
import { runParley } from './run-parley.ts';

async function aScene() {
  const { store, dataDir } = await aStore();
  const tasks = (...args: string[]) => runParley(['tasks', ...args], { PARLEY_DATA_DIR: dataDir });
  return { store, tasks, worker: aCoordinator(store) };
}

it('lists tasks as graphs, and shows one with what was asked and answered', async () => {
  const { tasks, worker } = await aScene();
  expect((await tasks('list')).stdout).toBe('No tasks.\n');
  const { taskId, lane } = await worker.begin([
    { id: 'a', onFailure: 'retry' },
    { id: 'b' },
    { id: 'c', after: ['a', 'b'], agent: 'self' },
  ]);
  await worker.finish(taskId, 'b');
  await worker.fail(await worker.claimPeer(taskId, 'a'));
  const { taskId: other } = await worker.begin([{ id: 'x' }]);

  const lines = (await tasks('list')).stdout.split('\n');
  expect(
    lines
      .filter((line) => /^\S/.test(line))
      .map((line) => line.slice(0, 16))
      .toSorted(),
  ).toEqual([taskId, other].toSorted());
  const from = lines.findIndex((line) => line.startsWith(taskId));
  const [head, ...graph] = lines.slice(from, from + 4);
  expect(head).toMatch(
    / “a task” {2}executing, 1 of 3 subtasks ended, \d+ s, agent main, tokens: \d+, cost \$/,
  );
  expect(graph).toEqual([
    expect.stringMatching(/^ {2}a \(main\) {2}dispatched, try 2, .*, tokens: 0, cost \$0\.0000 {2}“do a”$/),
    expect.stringMatching(/^ {2}b \(main\) {2}done, 0 s, tokens: [1-9]\d*, cost \$0\.0000 {2}“do b”$/),
    expect.stringMatching(/^ {4}c \(self\) after a, b {2}pending {2}“do c”$/),
  ]);

  const shown = (await tasks('show', taskId.slice(0, 7))).stdout;
  expect(shown).toContain(`  coordinating, lane ${lane.key}\n`);
  expect(shown).toContain('  b: do b\n    expected: what b is\n    result: result of b\n');
  const [one] = JSON.parse((await tasks('list', '--session', lane.key, '--json')).stdout);
  expect(one).toMatchObject({ id: taskId, state: 'executing', subtasks: [{ id: 'a', tries: 2 }, {}, {}] });
  expect(JSON.parse((await tasks('show', taskId, '--json')).stdout)).toMatchObject({
    texts: { b: { result: 'result of b' } },
  });
  expect((await tasks('list', '--session', 'main:no:such:dm:one')).code).toBe(1);
});

it('stops a task and retries it, stops one subtask, and steers another', async () => {
  const { store, tasks, worker } = await aScene();
  const { taskId } = await worker.begin([
    { id: 'a' },
    { id: 'b', onFailure: 'skip' },
    { id: 'mine', agent: 'self' },
    { id: 'last', after: ['a'] },
  ]);
  const short = taskId.slice(0, 6);
  expect(await tasks('steer', short, 'a', 'faster')).toMatchObject({
    ...{ code: 0, stdout: 'It will read the message before its next step.\n' },
  });
  const { laneKey } = await worker.claimPeer(taskId, 'a');
  expect((await store.read(readWaitingItems, { laneKey })).map(({ excerpt }) => excerpt)).toEqual(['faster']);
  expect((await tasks('steer', short, 'mine', 'faster')).stderr).toBe(
    `mine is done by the coordinator itself; write to its conversation. See: ./bin/parley.mjs tasks show ${taskId}\n`,
  );
  expect((await tasks('steer', short, 'last', 'faster')).stderr).toContain('Nothing works on last.');
  expect((await tasks('steer', short, 'nobody', 'faster')).stderr).toContain(
    `nobody isn't a subtask of ${taskId}.`,
  );

  expect((await tasks('stop', short, 'b')).stdout).toBe(`Stopped b of ${taskId}.\n`);
  expect(await worker.states(taskId)).toMatchObject({ a: 'dispatched', b: 'skipped', last: 'pending' });
  expect((await tasks('stop', short, 'b')).stderr).toContain('b has already ended');
  expect((await tasks('retry', short)).stderr).toContain('hasn’t failed');

  expect(JSON.parse((await tasks('stop', short, '--json')).stdout)).toEqual({ id: taskId });
  await store.write(settleTask, { taskId });
  expect(await worker.show(taskId)).toMatchObject({ state: 'failed', error: 'stopped by console' });
  expect((await tasks('stop', short)).stderr).toContain(`${taskId} has already ended`);
  expect((await tasks('retry', short)).stdout).toBe(`Began again with what had failed in ${taskId}.\n`);
  expect(await worker.states(taskId)).toEqual({
    ...{ a: 'dispatched', b: 'skipped', mine: 'dispatched', last: 'pending' },
  });
  expect(await tasks('show', 'nothing')).toMatchObject({
    code: 1,
    stderr: "nothing isn't a task. See: ./bin/parley.mjs tasks list\n",
  });
});
