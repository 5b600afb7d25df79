/** Sub-agents through the real gateway, from a message on Telegram to the one answer. */
import { beforeAll, describe, test } from 'vitest';
import { deniedToChildren, deniedToTheDeepest, taskTools } from '../../src/subagents/tool-policy.ts';
import { createGate, type Gate } from '../platforms/anthropic/gate.ts';
import type { Turn } from '../platforms/anthropic/turn.ts';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { loadable } from './parley-process.ts';
import { openStage, type Stage, startStage } from './stage.ts';
import { hasResults, isSubagent, shows, spawns } from './subagent-play.ts';
import { until } from './until.ts';

/** Answers a child's task by naming it, behind its gate if it has one, and everything else with `parent`. */
function playing(
  parent: (body: WireBody) => Turn,
  gateOf: (task: string) => Gate | undefined = () => undefined,
): (body: WireBody) => Turn {
  return (body) => {
    if (!isSubagent(body)) return parent(body);
    const task = wordsOf(body).at(-1) ?? '';
    const text = `Result of ${task}, ${shows(body, 'blue horse') ? 'forked' : 'isolated'}.`;
    const gate = gateOf(task);
    return gate ? { text, hold: { gate } } : { text };
  };
}

const both = (body: WireBody) => shows(body, 'Result of part-1') && shows(body, 'Result of part-2');
const children = (stage: Stage) =>
  readStore(stage.dataDir, 'select label, state, status, told, depth from children order by label');

describe.concurrent('a message whose run starts sub-agents', () => {
  test("offers every tool that the sub-agents' lists name to an owner's run", async ({
    expect,
    onTestFinished,
  }) => {
    const env = { TEST_PLUGIN: loadable('web-tools') };
    const stage = await startStage({ config: { owners: ['telegram:501'] }, env }, onTestFinished);
    stage.model.script(() => ({ text: 'Hello.' }));
    const person = stage.person('telegram');
    person.says('Hello?');
    await until(() => person.standing().length > 0, { what: 'the answer' });
    const offered = stage.model.requests.flatMap(({ body }) => toolsOf(body));
    const named = [...deniedToChildren, ...deniedToTheDeepest, ...taskTools];
    expect(named.filter((name) => !offered.includes(name))).toEqual([]);
  });

  test('waits for two sub-agents in one run, each with its task, tools and model', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(
      {
        config: {
          agents: [
            { id: 'main', subagents: { allowAgents: ['*'] } },
            { id: 'clerk', model: 'claude-haiku-5-5' },
          ],
          models: { careful: { provider: 'anthropic', id: 'claude-opus-5' } },
        },
      },
      onTestFinished,
    );
    stage.model.script(
      playing((body) =>
        hasResults(body)
          ? { text: both(body) ? 'Here are both parts.' : 'Something is missing.' }
          : spawns(
              { task: 'part-1', label: 'one', wait: true, agentId: 'clerk' },
              { task: 'part-2', label: 'two', wait: true, context: 'fork', model: 'careful' },
            ),
      ),
    );
    await stage.start();
    const person = stage.person('telegram');
    person.says('Please do both parts of the blue horse');
    await until(() => person.standing().length > 0, { what: 'the answer' });
    await untilAtRest(stage.dataDir, 1);
    expect(person.standing()).toEqual(['Here are both parts.']);
    expect(children(stage).map(({ told }) => told)).toEqual(['tool', 'tool']);
    expect(readStore(stage.dataDir, `select result from children order by label`)).toEqual([
      { result: 'Result of part-1, isolated.' },
      { result: 'Result of part-2, forked.' },
    ]);
    expect(readStore(stage.dataDir, `select id from runs where laneKey not like 'agent:%'`)).toHaveLength(1);
    const bodies = stage.model.requests.map(({ body }) => body);
    expect(bodies.map((body) => [isSubagent(body) ? wordsOf(body).at(-1) : 'main', body.model])).toEqual(
      expect.arrayContaining([
        ['main', 'claude-sonnet-5-5'],
        ['part-1', 'claude-haiku-5-5'],
        ['part-2', 'claude-opus-5'],
      ]),
    );
    const offered = bodies.flatMap((body) => (isSubagent(body) ? [toolsOf(body)] : []));
    expect(offered).toHaveLength(2);
    for (const names of offered) {
      expect(names).toContain('once');
      const denied = [
        'sessions_spawn',
        'subagents',
        'agents_list',
        'sessions_list',
        'session_status',
        'message',
      ];
      expect(names.filter((name) => denied.includes(name))).toEqual([]);
    }
    expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('continues without a sub-agent that a limit refuses, and refuses one to a guest', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await openStage(
      {
        config: {
          subagents: { maxChildrenPerAgent: 1, authority: 'member' },
          access: { allowFrom: ['telegram:501'] },
        },
      },
      onTestFinished,
    );
    const gate = createGate();
    stage.model.script(
      playing(
        (body) => {
          if (!toolsOf(body).includes('sessions_spawn')) return { text: 'I do it alone.' };
          if (!hasResults(body))
            return spawns({ task: 'part-1', label: 'one' }, { task: 'part-2', label: 'two' });
          if (shows(body, 'Result of')) return { text: 'ANNOUNCE_SKIP' };
          gate.open();
          const isRefused = shows(body, '"reason":"too_many_children","limit":1');
          return { text: isRefused ? 'One part only.' : 'Nothing was refused.' };
        },
        () => gate,
      ),
    );
    await stage.start();
    const person = stage.person('telegram');
    person.says('Please do both parts');
    await until(() => person.standing().length > 0, { what: 'the answer' });
    await until(() => children(stage).every(({ state }) => state === 'done'), {
      what: 'the end of the child',
    });
    const guest = stage.person('telegram', 502);
    guest.says('Please do both parts');
    await until(() => guest.standing().length > 0, { what: 'the answer to the guest' });
    await untilAtRest(stage.dataDir, 2);
    expect(person.standing()).toEqual(['One part only.']);
    expect(guest.standing()).toEqual(['I do it alone.']);
    expect(children(stage)).toHaveLength(1);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });
});

describeRow('a message whose run starts sub-agents, in one data folder,', (atEnd) => {
  let stage: Stage;
  const waited = { how: 'waited for', id: 501, task: 'part-waited', told: 'tool' };
  const announced = { how: 'announced', id: 502, task: 'part-announced', told: 'lane' };
  const parent = (body: WireBody): Turn => {
    if (shows(body, 'both parts')) return announcing(body);
    const { task } = shows(body, waited.how) ? waited : announced;
    if (!hasResults(body)) return spawns({ task, label: task, wait: task === waited.task });
    return { text: shows(body, 'Result of') ? 'Here it is.' : 'NO_REPLY' };
  };

  beforeAll(async () => {
    stage = await openStage({}, atEnd);
    const gates = new Map([waited, announced].map(({ task }) => [task, createGate()]));
    stage.model.script(playing(parent, (task) => gates.get(task)));
    const first = await stage.start();
    for (const { how, id } of [waited, announced])
      stage.person('telegram', id).says(`Please do one part, ${how}`);
    for (const gate of gates.values()) await gate.reached;
    await first.kill();
    for (const gate of gates.values()) gate.open();
    stage.model.script(playing(parent));
    await stage.start();
  });

  test.for([waited, announced])(
    'answers once after a kill during a sub-agent whose result is $how',
    async ({ id, task, told }, { expect }) => {
      const person = stage.person('telegram', id);
      await until(() => person.standing().length > 0, { what: 'the answer' });
      await untilAtRest(stage.dataDir, 2);
      expect(person.standing()).toEqual(['Here it is.']);
      expect(children(stage).filter(({ label }) => label === task)).toEqual([
        { label: task, state: 'done', status: 'completed', told, depth: 1 },
      ]);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    },
  );

  test('answers once, after both sub-agents announced their results', async ({ expect }) => {
    const person = stage.person('telegram', 503);
    person.says('Please do both parts');
    await until(() => person.standing().length > 0, { what: 'the answer' });
    await untilAtRest(stage.dataDir, 3);
    expect(person.standing()).toEqual(['Here are both parts.']);
    const done = { state: 'done', status: 'completed', told: 'lane', depth: 1 };
    expect(children(stage).filter(({ label }) => label === 'one' || label === 'two')).toEqual([
      { label: 'one', ...done },
      { label: 'two', ...done },
    ]);
    const items = `select outcome from inbox where sourceKey like 'child:%' and laneKey like '%:503'`;
    expect(readStore(stage.dataDir, items)).toHaveLength(2);
    expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });
});

/** Doesn't wait: each result comes as a separate message, and the second is answered. */
function announcing(body: WireBody): Turn {
  if (!hasResults(body)) return spawns({ task: 'part-1', label: 'one' }, { task: 'part-2', label: 'two' });
  if (both(body)) return { text: 'Here are both parts.' };
  return { text: shows(body, 'Result of') ? 'ANNOUNCE_SKIP' : 'NO_REPLY' };
}

/** Returns the texts sent to the model, oldest first. */
function wordsOf(body: WireBody): readonly string[] {
  const said = body.messages.filter(({ role }) => role === 'user').flatMap(blocksOf);
  return said.flatMap(({ type, text }) => (type === 'text' && text !== undefined ? [text] : []));
}

function toolsOf({ tools }: WireBody): readonly string[] {
  return tools?.map(({ name }) => name) ?? [];
}
