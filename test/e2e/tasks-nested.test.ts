/** A sub-agent that delegates its own subtask, through the real gateway. */
import { describe, test } from 'vitest';
import type { Turn } from '../platforms/anthropic/turn.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { openStage } from './stage.ts';
import { hasResults, isSubagent, shows } from './subagent-play.ts';
import { until } from './until.ts';

const delegates = (...ids: readonly string[]): Turn => {
  const subtasks = ids.map((id) => ({ id, agent: 'clerk', instructions: `Do the ${id} part.` }));
  return { toolCalls: [{ name: 'delegate', input: { title: ids.join(' and '), subtasks } }] };
};

describe.concurrent('a subtask whose agent delegates', () => {
  test('replies with what its agent writes when the graph below has ended', async ({
    expect,
    onTestFinished,
  }) => {
    const rosters: string[] = [];
    const toolsAtDepth = new Map<string, readonly string[]>();
    const script = (body: WireBody): Turn => {
      const offered = (body as { tools?: readonly { name: string; description: string }[] }).tools ?? [];
      const names = offered.map(({ name }) => name);
      if (!isSubagent(body)) {
        if (shows(body, 'its subtask has ended'))
          return {
            text: shows(body, 'Deep: left and right.') ? 'The whole answer.' : 'Something is missing.',
          };
        return hasResults(body) ? { text: 'NO_REPLY' } : delegates('whole');
      }
      if (!shows(body, 'Do the whole part.')) {
        toolsAtDepth.set('deepest', names);
        return { text: shows(body, 'Do the left part.') ? 'Left is done.' : 'Right is done.' };
      }
      rosters.push(offered.find(({ name }) => name === 'delegate')?.description ?? '');
      if (shows(body, 'all 2 subtasks have ended')) {
        const hasBoth = shows(body, 'Left is done.') && shows(body, 'Right is done.');
        return { text: hasBoth ? 'Deep: left and right.' : 'Deep: a part is missing.' };
      }
      return hasResults(body) ? { text: 'I have asked two others.' } : delegates('left', 'right');
    };
    const clerk = { id: 'clerk', specialty: 'Knows the files.' };
    const subagents = { allowAgents: ['clerk'] };
    const stage = await openStage(
      { config: { subagents: { maxSpawnDepth: 2 }, agents: [{ id: 'main', subagents }, clerk] } },
      onTestFinished,
    );
    stage.model.script(script);
    await stage.start();
    const person = stage.person('telegram');
    person.says('Please do the whole thing');
    await until(() => person.standing().length > 0, { what: 'the answer' });
    await untilAtRest(stage.dataDir, 1);
    expect(person.standing()).toEqual(['The whole answer.']);
    expect(readStore(stage.dataDir, 'select title, state, told from tasks order by createdAt')).toEqual([
      { title: 'whole', state: 'done', told: 'lane' },
      { title: 'left and right', state: 'done', told: 'parent' },
    ]);
    expect(
      readStore(stage.dataDir, `select body from taskMessages where type = 'reply' and subtaskId = 'whole'`),
    ).toEqual([{ body: 'Deep: left and right.' }]);
    expect(rosters[0]).toContain(
      '- clerk: yourself, as a sub-agent that only knows its instructions; Knows the files.',
    );
    expect(toolsAtDepth.get('deepest')).not.toEqual(expect.arrayContaining(['delegate']));
    expect(toolsAtDepth.get('deepest')).not.toEqual(expect.arrayContaining(['tasks']));
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });
});
