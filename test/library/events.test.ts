import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { AgentEvent } from '#contracts/agent-event.ts';
import { agentLoop, agentLoopContinue } from '../../src/agent/loop.ts';
import { aConfig, aContext, aTool, userSays } from '../agent/support/builders.ts';
import { hello, noSignal, play } from '../agent/support/run-loop.ts';
import { callsTools, says, scriptedModel } from '../agent/support/scripted-model.ts';

/** The table of docs/library.md: events in order, with the members that they always have. */
const documented = [
  ...readFileSync('docs/library.md', 'utf8').matchAll(
    /^\| `((?:agent|turn|compaction|message|tool)_\w+)` \| (.*?) \|/gm,
  ),
].map(([, type = '', members = '']) => ({
  type,
  members: [...members.matchAll(/`(\w+)`/g)].map(([, member = '']) => member),
}));

/** Fails to compile when an event is added, so that the table can't miss one. */
const all: Readonly<Record<AgentEvent['type'], true>> = {
  ...{ agent_start: true, turn_start: true, turn_end: true, agent_end: true },
  ...{ compaction_start: true, compaction_end: true },
  ...{ message_start: true, message_update: true, message_end: true },
  ...{ tool_execution_start: true, tool_execution_asked: true, tool_execution_prepared: true },
  ...{ tool_execution_update: true, tool_execution_parked: true, tool_execution_end: true },
};

async function runs(): Promise<readonly (readonly AgentEvent[])[]> {
  const tool = aTool('a', {
    execute: async (_input, { update }) => {
      update('half of it');
      return { text: 'all of it' };
    },
  });
  const waiting = aTool('a', {
    replay: 'durable',
    execute: async () => ({ parked: { reason: 'an answer' } }),
  });
  const config = () => aConfig({ model: scriptedModel(callsTools({ id: '1', name: 'a' }), says('done')) });
  const compacting = {
    ...config(),
    middleware: [{ beforeTurn: async () => ({ kind: 'compact', oldTokens: 9, threshold: 5 }) as const }],
    compact: async () => 'compacted' as const,
    reloadMessages: async () => [userSays('s', 'summary')],
  };
  const played = await Promise.all([
    play(agentLoopContinue(aContext([tool], [hello]), compacting, noSignal())),
    play(agentLoopContinue(aContext([waiting], [hello]), config(), noSignal())),
    play(
      agentLoopContinue(aContext([tool], [hello]), { ...config(), permit: async () => 'ask' }, noSignal()),
    ),
    play(agentLoop([hello], aContext([tool]), config(), noSignal())),
  ]);
  return played.map(({ events }) => events);
}

it('sends the events of the documented table, with its members, in its order', async () => {
  const order = documented.map(({ type }) => type);
  expect(order.toSorted()).toEqual(Object.keys(all).toSorted());
  const [compacted = [], parked = [], asked = [], plain = []] = await runs();
  for (const events of [compacted, parked, asked]) {
    const seen = [...new Set(events.map(({ type }) => type))];
    expect(seen).toEqual(order.filter((type) => seen.includes(type as AgentEvent['type'])));
  }
  const every = [compacted, parked, asked, plain].flat();
  expect(new Set(every.map(({ type }) => type)).size).toBe(order.length);
  const optional = ['type', 'cost', 'detail', 'resumes', 'waitMs'];
  for (const event of every) {
    const members = documented.find(({ type }) => type === event.type)?.members;
    expect(
      Object.keys(event)
        .filter((name) => !optional.includes(name))
        .toSorted(),
    ).toEqual(members?.toSorted());
  }
});
