/** Sub-agents through the real gateway, from a message on Telegram to the one answer. */
import { describe, test } from 'vitest';
import { runParley } from '../cli/run-parley.ts';
import { createGate, type Gate } from '../platforms/anthropic/gate.ts';
import type { Turn } from '../platforms/anthropic/turn.ts';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { aDataFolder, startParley } from './parley-process.ts';
import { openStage, type Stage } from './stage.ts';
import { hasResults, isSubagent, shows, spawns } from './subagent-play.ts';
import { until } from './until.ts';

type OnFinished = (end: () => Promise<void>) => void;

async function aStage(
  onTestFinished: OnFinished,
  config: Readonly<Record<string, unknown>> = {},
): Promise<Stage> {
  const stage = await openStage(config);
  onTestFinished(() => stage.close());
  return stage;
}

/** Answers a child's task by naming it, and everything else by `parent`. */
function playing(parent: (body: WireBody) => Turn, gate?: Gate): (body: WireBody) => Turn {
  return (body) => {
    if (!isSubagent(body)) return parent(body);
    const text = `Result of ${wordsOf(body).at(-1)}, ${shows(body, 'blue horse') ? 'forked' : 'isolated'}.`;
    return gate ? { text, hold: { gate } } : { text };
  };
}

const both = (body: WireBody) => shows(body, 'Result of part-1') && shows(body, 'Result of part-2');
const children = (stage: Stage) =>
  readStore(stage.dataDir, 'select label, state, status, told, depth from children order by label');

describe.concurrent('a message whose run starts sub-agents', () => {
  test('is answered once, when both have announced their results', async ({ expect, onTestFinished }) => {
    const stage = await aStage(onTestFinished);
    stage.model.script(
      playing((body) => {
        if (!hasResults(body))
          return spawns({ task: 'part-1', label: 'one' }, { task: 'part-2', label: 'two' });
        if (both(body)) return { text: 'Here are both parts.' };
        return { text: shows(body, 'Result of') ? 'ANNOUNCE_SKIP' : 'NO_REPLY' };
      }),
    );
    await stage.start();
    const person = stage.person('telegram');
    person.says('Please do both parts');
    await until(() => person.standing().length > 0, { what: 'the answer' });
    await untilAtRest(stage.dataDir, 1);
    expect(person.standing()).toEqual(['Here are both parts.']);
    const done = { state: 'done', status: 'completed', told: 'lane', depth: 1 };
    expect(children(stage)).toEqual([
      { label: 'one', ...done },
      { label: 'two', ...done },
    ]);
    const announced = `select outcome from inbox where sourceKey like 'child:%'`;
    expect(readStore(stage.dataDir, announced)).toHaveLength(2);
    expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('waits for both in one run; each sees what it was given, with the tools of a sub-agent and its own model', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await aStage(onTestFinished, {
      agents: [
        { id: 'main', subagents: { allowAgents: ['*'] } },
        { id: 'clerk', model: 'claude-haiku-5-5' },
      ],
      models: { careful: { provider: 'anthropic', id: 'claude-opus-5' } },
    });
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

  test('reads a refusal with its limit, and goes on without the sub-agent; a guest gets none if only members do', async ({
    expect,
    onTestFinished,
  }) => {
    const stage = await aStage(onTestFinished, {
      subagents: { maxChildrenPerAgent: 1, authority: 'member' },
      access: { allowFrom: ['telegram:501'] },
    });
    const gate = createGate();
    stage.model.script(
      playing((body) => {
        if (!toolsOf(body).includes('sessions_spawn')) return { text: 'I do it alone.' };
        if (!hasResults(body))
          return spawns({ task: 'part-1', label: 'one' }, { task: 'part-2', label: 'two' });
        if (shows(body, 'Result of')) return { text: 'ANNOUNCE_SKIP' };
        gate.open();
        const isRefused = shows(body, '"reason":"too_many_children","limit":1');
        return { text: isRefused ? 'One part only.' : 'Nothing was refused.' };
      }, gate),
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

  test.for([true, false])(
    'is answered once after kill -9 between spawn and end, waiting: %s',
    async (wait, { expect, onTestFinished }) => {
      const stage = await aStage(onTestFinished);
      const gate = createGate();
      const parent = (body: WireBody): Turn => {
        if (!hasResults(body)) return spawns({ task: 'part-1', label: 'one', wait });
        return { text: shows(body, 'Result of') ? 'Here it is.' : 'NO_REPLY' };
      };
      stage.model.script(playing(parent, gate));
      const first = await stage.start();
      const person = stage.person('telegram');
      person.says('Please do one part');
      await gate.reached;
      await first.kill();
      gate.open();
      stage.model.script(playing(parent));
      await stage.start();
      await until(() => person.standing().length > 0, { what: 'the answer' });
      await untilAtRest(stage.dataDir, 1);
      expect(person.standing()).toEqual(['Here it is.']);
      expect(children(stage)).toEqual([
        { label: 'one', state: 'done', status: 'completed', told: wait ? 'tool' : 'lane', depth: 1 },
      ]);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    },
  );
});

test.concurrent('the demo model shows two sub-agents and one answer, without a key', async ({
  expect,
  onTestFinished,
}) => {
  const { path: dataDir, remove } = await aDataFolder();
  const parley = await startParley({ dataDir, env: {} });
  onTestFinished(async () => {
    await parley.kill();
    await remove();
  });
  const env = { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0' };
  const { stdout, stderr } = await runParley(['agent', '--message', 'spawn two', '--wait'], env);
  expect(stderr).toBe('');
  expect(stdout).toMatch(/Part 1 is done[\s\S]*Part 2 is done/);
  expect(readStore(dataDir, 'select status, told from children')).toEqual([
    { status: 'completed', told: 'tool' },
    { status: 'completed', told: 'tool' },
  ]);
});

/** What was said to the model, oldest first. */
function wordsOf(body: WireBody): readonly string[] {
  const said = body.messages.filter(({ role }) => role === 'user').flatMap(blocksOf);
  return said.flatMap(({ type, text }) => (type === 'text' && text !== undefined ? [text] : []));
}

function toolsOf({ tools }: WireBody): readonly string[] {
  return tools?.map(({ name }) => name) ?? [];
}
