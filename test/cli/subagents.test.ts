import { expect, it } from 'vitest';
import { findChild } from '../../src/store/children/child.ts';
import { aFamilyWorker } from '../store/family.ts';
import { aStore } from '../support/own-store.ts';
import { runParley } from './run-parley.ts';

it('lists, shows, steers and stops sub-agents on the data folder', async () => {
  const { store, dataDir } = await aStore();
  const subagents = (...args: string[]) => runParley(['subagents', ...args], { PARLEY_DATA_DIR: dataDir });
  expect((await subagents('list')).stdout).toBe('No sub-agents.\n');

  const worker = aFamilyWorker(store);
  const { run } = await worker.begin();
  const { id } = await worker.spawnOne(run, { over: { label: 'research' } });
  expect((await subagents('list')).stdout).toMatch(new RegExp(`^${id}  depth 1, queued, .*“research”\n$`));
  const [listed] = JSON.parse((await subagents('list', '--json')).stdout);
  expect(listed).toMatchObject({ id, state: 'queued', label: 'research' });
  expect((await subagents('info', id.slice(0, 6))).stdout).toContain('task: task of');

  expect(await subagents('steer', id, 'faster')).toMatchObject({
    ...{ code: 0, stdout: 'It will read the message before its next step.\n' },
  });
  expect(JSON.parse((await subagents('stop', id.slice(0, 6), '--json')).stdout)).toEqual({ id, stopped: 1 });
  expect(await store.read(findChild, { childId: id })).toMatchObject({ state: 'done', status: 'stopped' });
  const talkative = await worker.spawnOne(run);
  await worker.answer(await worker.claimRun(talkative.laneKey), 'all I found');
  expect((await subagents('list', '--json')).stdout).not.toContain('all I found');
  expect((await subagents('info', talkative.id)).stdout).toContain('all I found');
  const again = await subagents('stop', id);
  expect(again).toMatchObject({
    code: 1,
    stderr: `${id} has already ended. See: ./bin/parley.mjs subagents info ${id}\n`,
  });
  expect((await subagents('log', 'nobody')).stderr).toBe(
    "nobody isn't a sub-agent. See: ./bin/parley.mjs subagents list\n",
  );
});
