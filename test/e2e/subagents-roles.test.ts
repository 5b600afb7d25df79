/** The kill points of sub-agents in a worker and a gateway: another process takes over, everyone is notified once. */
import { describe, test } from 'vitest';
import type { KillPoint } from '../../src/contracts/probe.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import type { Turn } from '../platforms/anthropic/turn.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import { shareOf } from '../support/turn.ts';
import { findBreaches, untilAtRest } from './conservation.ts';
import { openStage, type Stage } from './stage.ts';
import { hasResults, isSubagent, shows, spawns, subagentEnds } from './subagent-play.ts';
import { ada } from './telegram-chat.ts';
import { until } from './until.ts';

type Case = {
  readonly title: string;
  readonly role: 'gateway' | 'worker';
  readonly killAt: `${KillPoint}:1`;
  /** What the parent does first, and how it answers what it reads next. */
  readonly parent: (body: WireBody) => Turn;
  /** Sub-agents are held until /stop arrives. */
  readonly isStopped?: true;
  readonly expected: string;
  readonly ends: readonly (readonly [status: string, told: string])[];
};

const answer = 'Here it is.';
const result = 'Result of the part.';
const { stopped } = textsFor('en');
const part = (over: Readonly<Record<string, unknown>> = {}) => ({ task: 'the part', label: 'one', ...over });

const asks = (wait: boolean) => (body: WireBody) => {
  if (!hasResults(body)) return spawns(part({ wait }));
  return { text: shows(body, result) ? answer : 'NO_REPLY' };
};

/** Starts one, stops it, and answers when it learns of the end. */
const stopsItsOwn = (body: WireBody): Turn => {
  if (shows(body, 'Sub-agent "one"'))
    return { text: shows(body, ': stopped after') ? answer : 'It goes on.' };
  if (!hasResults(body)) return spawns(part());
  const isAsked = shows(body, 'Stopped, with all below it') || shows(body, 'It has ended already');
  return isAsked
    ? { text: 'NO_REPLY' }
    : { toolCalls: [{ name: 'subagents', input: { action: 'stop', id: 'one' } }] };
};

const cases: readonly Case[] = [
  ...(['child-reserved', 'child-finished'] as const).flatMap((point) =>
    [true, false].map(
      (wait): Case => ({
        title: wait ? 'that its parent waits for' : 'that is announced',
        ...{ role: 'worker', killAt: `${point}:1`, parent: asks(wait), expected: answer },
        ends: [['completed', wait ? 'tool' : 'lane']],
      }),
    ),
  ),
  {
    title: 'that its parent stops',
    ...{ role: 'worker', killAt: 'tree-stopped:1', parent: stopsItsOwn, expected: answer },
    ends: [['stopped', 'lane']],
  },
  ...(['tree-stopped', 'child-finished'] as const).map(
    (point): Case => ({
      title: 'that /stop ends, one at work and one that is queued',
      ...{ role: 'gateway', killAt: `${point}:1`, isStopped: true, expected: stopped },
      parent: () => spawns(part({ wait: true }), part({ wait: true, label: 'two' })),
      ends: [
        ['stopped', 'none'],
        ['stopped', 'none'],
      ],
    }),
  ),
];

/** Plays the case to its end: one process dies at the point, and another of the same role starts. */
async function play(
  stage: Stage,
  { role, killAt, parent, isStopped }: Case,
): Promise<{ diedOf: string | null }> {
  const { telegram, model, dataDir } = stage;
  const held = createGate();
  const holds = isStopped || parent === stopsItsOwn;
  model.script((body) =>
    isSubagent(body) ? { text: result, ...(holds && { hold: { gate: held } }) } : parent(body),
  );
  const [dying] = await Promise.all([
    stage.start({ role, killAt }),
    stage.start({ role: role === 'worker' ? 'gateway' : 'worker' }),
  ]);
  telegram.userSends({ from: ada, text: 'Please do it' });
  if (isStopped) {
    await held.reached;
    telegram.userSends({ from: ada, text: '/stop' });
  }
  const { signal } = await dying.ended;
  await stage.start({ role });
  await until(() => telegram.botMessages(ada.id).length > 0, { what: 'what is said in the end' });
  await untilAtRest(dataDir, isStopped ? 2 : 1);
  return { diedOf: signal };
}

describe.concurrent('a sub-agent', { timeout: 300_000 }, () => {
  for (const one of shareOf(cases, 4))
    test(`finishes a sub-agent ${one.title} after a ${one.role} was killed at ${one.killAt}`, async ({
      expect,
      onTestFinished,
    }) => {
      const lanes = { concurrency: { 'sub-1': 1 }, leaseMs: 2_000, renewMs: 500 };
      const stage = await openStage({ config: { lanes } }, onTestFinished);
      expect(await play(stage, one)).toEqual({ diedOf: 'SIGKILL' });
      expect(stage.telegram.botMessages(ada.id).map(({ text }) => text)).toEqual([one.expected]);
      expect(subagentEnds(stage.dataDir).map(({ status, told }) => [status, told])).toEqual(one.ends);
      expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    });
});
