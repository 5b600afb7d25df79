/** A message that becomes a diamond of subtasks, on each network: steered half-way, killed twice, answered once. */
import { describe, test } from 'vitest';
import { createGate, type Gate } from '../platforms/anthropic/gate.ts';
import type { Turn } from '../platforms/anthropic/turn.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import { shareOf } from '../support/turn.ts';
import { findBreaches, readStore, untilAtRest, untilLedger } from './conservation.ts';
import { discordNetwork } from './networks/discord.ts';
import type { Network } from './networks/network.ts';
import { signalNetwork } from './networks/signal.ts';
import { telegramNetwork } from './networks/telegram.ts';
import { openStage, type Stage } from './stage.ts';
import { hasResults, shows } from './subagent-play.ts';
import {
  type DiamondNode,
  delegatesDiamond,
  diamondDone,
  isSynthesis,
  nodeOf,
  resultOf,
  subtaskEnds,
  taskEnds,
} from './task-play.ts';
import { until } from './until.ts';

const networks: readonly Network[] = [telegramNetwork, discordNetwork, signalNetwork];

/** Scripts coordinator and peers, which answer by the content of a request, and holds the peers of these subtasks. */
function aTeam(stage: Stage) {
  const gates = new Map<DiamondNode, Gate>();
  const turnOf = (body: WireBody): Turn => {
    const node = nodeOf(body);
    if (node !== undefined) return { text: resultOf(node, body) };
    if (isSynthesis(body)) return { text: synthesisOf(body) };
    if (shows(body, 'make it in blue')) return { text: 'Noted: blue.' };
    return hasResults(body) ? { text: 'NO_REPLY' } : delegatesDiamond;
  };
  stage.model.script((body) => {
    const node = nodeOf(body);
    const gate = node && gates.get(node);
    return { ...turnOf(body), ...(gate && { hold: { gate } }) };
  });
  return {
    /** From now on only the requests of these peers are held, each at its own gate. */
    hold: (...nodes: readonly DiamondNode[]) => {
      gates.clear();
      for (const node of nodes) gates.set(node, createGate());
    },
    at: (node: DiamondNode): Gate => {
      const gate = gates.get(node);
      if (!gate) throw new Error(`test error: ${node} isn't held`);
      return gate;
    },
  };
}

/** Proves that the coordinator knows every result and what was said meanwhile. */
function synthesisOf(body: WireBody): string {
  const parts = ['top', 'left', 'right', 'bottom'].filter((id) => shows(body, `The ${id} part.`));
  return `All: ${parts.join(', ')}${shows(body, 'make it in blue') ? ', in blue' : ''}.`;
}

async function playTask(stage: Stage, { channel }: Network) {
  const team = aTeam(stage);
  const person = stage.person(channel);

  // 1: killed when the first reply has dispatched both arms, before either has begun.
  team.hold('left', 'right');
  const first = await stage.start({ killAt: 'task-dispatched:3' });
  person.says('Please do the diamond');
  await first.ended;

  // 2: steered while both arms are at work, and killed when the first of them has replied.
  const second = await stage.start({ killAt: 'reply-recorded:1' });
  await Promise.all([team.at('left').reached, team.at('right').reached]);
  person.says('and make it in blue');
  await untilLedger(stage.dataDir, 2);
  await until(() => person.standing().length > 0, { what: 'the answer to the steer' });
  team.at('right').open();
  await second.ended;

  // 3: to the end.
  team.hold();
  await stage.start();
  await until(() => person.standing().length > 1, { what: 'the synthesis' });
  await untilAtRest(stage.dataDir, 2);
  return person.standing();
}

describe.concurrent('a diamond of subtasks', { timeout: 300_000 }, () => {
  test.for(shareOf(networks, 3))(
    'does each subtask once and answers once on $name, after a steer and two kills',
    async (network, { expect, onTestFinished }) => {
      const stage = await openStage({ networks: [network.part] }, onTestFinished);
      const standing = await playTask(stage, network);
      expect(standing).toEqual(['Noted: blue.', 'All: top, left, right, bottom, in blue.']);
      expect(subtaskEnds(stage.dataDir)).toEqual(diamondDone);
      expect(taskEnds(stage.dataDir)).toEqual([{ state: 'done', told: 'lane', rounds: 1, isUnsettled: 0 }]);
      const calls = readStore(stage.dataDir, `select state from toolCalls where name = 'delegate'`);
      expect(calls).toEqual([{ state: 'done' }]);
      expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    },
  );
});
