/** Sub-agents in several processes, with one slot for each class of lane. */
import { describe, test } from 'vitest';
import { createGate } from '../platforms/anthropic/gate.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { openStage } from './stage.ts';
import { hasResults, shows, spawns, subagentEnds, taskOf } from './subagent-play.ts';
import { ada } from './telegram-chat.ts';
import { until } from './until.ts';

const tasks = ['part-1', 'part-2', 'part-1-below', 'part-2-below'] as const;
const spawnsBoth = spawns(
  { task: 'part-1', label: 'one', wait: true },
  { task: 'part-2', label: 'two', wait: true },
);

describe.concurrent('sub-agents', { timeout: 300_000 }, () => {
  test('stops sub-agents at both depths on /stop, even in other processes', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage({ config: { subagents: { maxSpawnDepth: 2 } } }, onTestFinished);
    const { telegram, model, dataDir } = stage;
    await Promise.all([
      stage.start({ role: 'gateway' }),
      stage.start({ role: 'worker' }),
      stage.start({ role: 'worker' }),
    ]);
    const never = createGate();
    model.script((body) => {
      const task = taskOf(body, tasks);
      if (task === undefined) return hasResults(body) ? { text: 'All is done.' } : spawnsBoth;
      if (task === 'part-1' && !hasResults(body))
        return spawns({ task: 'part-1-below', label: 'below', wait: true });
      return { text: 'Never.', hold: { gate: never } };
    });
    telegram.userSends({ from: ada, text: 'Please do both parts' });
    const asked = (task: string) => model.requests.some(({ body }) => taskOf(body, tasks) === task);
    await until(() => asked('part-2') && asked('part-1-below'), { what: 'everybody is at work' });
    const since = performance.now();
    telegram.userSends({ from: ada, text: '/stop' });
    const live = () => readStore(dataDir, `select id from children where state <> 'done'`).length;
    await until(() => live() === 0, { what: 'the end of all sub-agents' });
    process.stdout.write(`measured: /stop of a tree: ${Math.round(performance.now() - since)} ms\n`);
    await untilAtRest(dataDir, 2);
    const end = { state: 'done', status: 'stopped', told: 'none' };
    expect(subagentEnds(dataDir)).toEqual([
      { label: 'below', depth: 2, ...end },
      { label: 'one', depth: 1, ...end },
      { label: 'two', depth: 1, ...end },
    ]);
    expect(telegram.botMessages(ada.id).map(({ text }) => text)).not.toContain('All is done.');
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('finishes sub-agents of waiting parents with one slot in each class', async ({
    expect,
    onTestFinished,
  }) => {
    const concurrency = { main: 1, 'sub-1': 1, 'sub-2': 1 };
    const stage = await openStage(
      { config: { lanes: { concurrency }, subagents: { maxSpawnDepth: 2 } } },
      onTestFinished,
    );
    stage.model.script((body) => {
      const task = taskOf(body, tasks);
      if (task === undefined) {
        const isWhole = shows(body, 'Result of part-1.') && shows(body, 'Result of part-2.');
        return hasResults(body) ? { text: isWhole ? 'Both are done.' : 'Something is missing.' } : spawnsBoth;
      }
      if (task.endsWith('below') || hasResults(body)) return { text: `Result of ${task}.` };
      return spawns({ task: `${task}-below`, label: 'below', wait: true });
    });
    await stage.start();
    const people = [501, 502].map((id) => stage.person('telegram', id));
    for (const person of people) person.says('Please do both parts');
    await until(() => people.every((person) => person.standing().length > 0), { what: 'both answers' });
    await untilAtRest(stage.dataDir, people.length);
    expect(people.map((person) => person.standing())).toEqual(people.map(() => ['Both are done.']));
    const ends = subagentEnds(stage.dataDir).map(({ status, told }) => [status, told]);
    expect(ends).toEqual(Array.from({ length: 8 }, () => ['completed', 'tool']));
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });
});
