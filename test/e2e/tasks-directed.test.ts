/** A task directed from the chat and from the command line, at a running gateway. */
import { describe, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import type { Turn } from '../platforms/anthropic/turn.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { pageToken } from './page-state.ts';
import { openStage, type Stage } from './stage.ts';
import { hasResults, shows } from './subagent-play.ts';
import { delegatesDiamond, isSynthesis, nodeOf, resultOf } from './task-play.ts';
import { until } from './until.ts';

/** Scripts coordinator and peers; the first requests of the two arms are held. */
function aTeam(stage: Stage) {
  const gates = new Map([
    ['left', createGate()],
    ['right', createGate()],
  ] as const);
  const turnOf = (body: WireBody): Turn => {
    const node = nodeOf(body);
    if (node !== undefined) return { text: resultOf(node, body) };
    if (isSynthesis(body)) return { text: 'All four parts.' };
    if (shows(body, 'has failed')) return { text: 'I had to give up.' };
    return hasResults(body) ? { text: 'NO_REPLY' } : delegatesDiamond;
  };
  stage.model.script((body) => {
    const node = nodeOf(body);
    const gate = node === 'left' || node === 'right' ? gates.get(node) : undefined;
    return { ...turnOf(body), ...(gate && { hold: { gate } }) };
  });
  return {
    atWork: Promise.all([...gates.values()].map(({ reached }) => reached)),
    letGo: () => gates.clear(),
  };
}

describe.concurrent('a task at a running gateway', { timeout: 120_000 }, () => {
  test('obeys what a person asks in chat, and begins again from the command line', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage({}, onTestFinished);
    const team = aTeam(stage);
    await stage.start();
    const person = stage.person('telegram');
    const answered = async (words: string, answer: RegExp) => {
      person.says(words);
      await until(() => person.standing().some((text) => answer.test(text)), { what: `${words}: ${answer}` });
    };
    const tasks = async (...args: string[]) => {
      const ran = await runParley(['tasks', ...args], {
        PARLEY_DATA_DIR: stage.dataDir,
        PARLEY_TOKEN: pageToken,
      });
      if (ran.code !== 0) throw new Error(ran.stderr);
      return ran.stdout;
    };
    const states = async () => {
      const [task] = JSON.parse(await tasks('list', '--json')) as { subtasks: { state: string }[] }[];
      return task?.subtasks.map(({ state }) => state);
    };

    person.says('Please do the diamond');
    await team.atWork;
    const [row] = readStore(stage.dataDir, 'select id from tasks');
    const id = String(row?.id).slice(0, 5);
    await answered('/tasks', new RegExp(`^${id} “the diamond”: 1 of 4 subtasks ended\n`));
    await answered(
      `/tasks show ${id}`,
      /· right \(main\): at work, \d+ s\n· bottom \(main\): waiting \(left, right\)/,
    );
    expect(await states()).toEqual(['done', 'dispatched', 'dispatched', 'pending']);
    await answered(`/tasks steer ${id} left make it in blue`, /passed that on to left/);
    const steers = `select content from inbox where source = 'child' and sourceKey like 'steer:%'`;
    expect(readStore(stage.dataDir, steers)).toEqual([
      { content: expect.stringContaining('make it in blue') },
    ]);

    await answered(`/tasks stop ${id} right`, /stopping right of “the diamond”/);
    await until(() => person.standing().includes('I had to give up.'), { what: 'the failure' });
    await untilAtRest(stage.dataDir, 1);
    expect(await states()).toEqual(['done', 'failed', 'failed', 'skipped']);

    team.letGo();
    expect(await tasks('retry', id)).toContain('Began again');
    await until(() => person.standing().includes('All four parts.'), { what: 'the synthesis' });
    await untilAtRest(stage.dataDir, 1);
    expect(await tasks('show', id)).toMatch(/ {2}done, 4 of 4 subtasks ended/);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });
});
