/** A message whose run has nested sub-agents, on each network: steered, killed twice, answered once. */
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
import { hasResults, shows, spawns, subagentEnds, taskOf } from './subagent-play.ts';
import { until } from './until.ts';

const networks: readonly Network[] = [telegramNetwork, discordNetwork, signalNetwork];
const tasks = ['part-1', 'part-2', 'part-1-below'] as const;
type Task = (typeof tasks)[number];
/** The usage of every answered model request, in tokens. */
const used = { input_tokens: 1000, output_tokens: 10 };
const nothingCached = { cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };

/** The model of the family: it answers by the content of a request, so a repeated one gets the same answer. */
function aFamily(stage: Stage) {
  const gates = new Map<Task, Gate>();
  let answered = 0;
  const turnOf = (body: WireBody): Turn => {
    switch (taskOf(body, tasks)) {
      case 'part-1':
        if (!hasResults(body)) return spawns({ task: 'part-1-below', label: 'below', wait: true });
        return { text: `Part 1, with ${shows(body, 'Part below.') ? 'all of it' : 'a hole'}.` };
      case 'part-2':
        return { text: 'Part 2.' };
      case 'part-1-below':
        return { text: 'Part below.' };
      case undefined:
        if (!hasResults(body))
          return spawns(
            { task: 'part-1', label: 'one', wait: true },
            { task: 'part-2', label: 'two', wait: true },
          );
        return { text: summaryOf(body) };
    }
  };
  stage.model.script((body) => {
    const task = taskOf(body, tasks);
    const gate = task && gates.get(task);
    if (!gate) answered += 1;
    else void gate.opened.then(() => (answered += 1));
    return { ...turnOf(body), usage: { ...used, ...nothingCached }, ...(gate && { hold: { gate } }) };
  });
  return {
    /** From now on the requests of these tasks are held, each at its own gate. */
    hold: (...held: readonly Task[]) => {
      gates.clear();
      for (const task of held) gates.set(task, createGate());
    },
    at: (task: Task): Gate => {
      const gate = gates.get(task);
      if (!gate) throw new Error(`test error: ${task} isn't held`);
      return gate;
    },
    answered: () => answered,
  };
}

function summaryOf(body: WireBody): string {
  const parts = ['Part 1, with all of it.', 'Part 2.', 'in blue'].filter((part) => shows(body, part));
  return `All there is: ${parts.join(' ')}`;
}

const parkedRuns = ({ dataDir }: Stage) =>
  readStore(dataDir, 'select id from runs where parkedAt is not null').length;

/** Plays the complete story on one network. Resolves at rest. */
async function playFamily(stage: Stage, { channel }: Network) {
  const family = aFamily(stage);
  const person = stage.person(channel);

  // 1: killed when the second sub-agent is stored, before its call has a result.
  family.hold(...tasks);
  const first = await stage.start({ killAt: 'child-reserved:2' });
  person.says('Please do both parts');
  await first.ended;

  // 2: steered when everybody is at work, and killed when the first sub-agent has ended.
  family.hold('part-2', 'part-1-below');
  const second = await stage.start({ killAt: 'child-finished:1' });
  await Promise.all([family.at('part-2').reached, family.at('part-1-below').reached]);
  await until(() => parkedRuns(stage) === 2, { what: 'both parents are parked' });
  person.says('and make it in blue');
  await untilLedger(stage.dataDir, 2);
  family.at('part-2').open();
  await second.ended;

  // 3: to the end.
  family.hold();
  await stage.start();
  await until(() => person.standing().length > 0, { what: 'the answer' });
  await untilAtRest(stage.dataDir, 2);
  return { standing: person.standing(), answered: family.answered() };
}

describe.concurrent('a run with sub-agents at two depths', { timeout: 300_000 }, () => {
  test.for(shareOf(networks, 3))(
    'answers a run with sub-agents once on $name, after a steer and two kills',
    async (network, context) => {
      const { expect, onTestFinished } = context;
      const config = { subagents: { maxSpawnDepth: 2 } };
      const stage = await openStage({ config, networks: [network.part] }, onTestFinished);
      const { standing, answered } = await playFamily(stage, network);

      expect(standing).toEqual(['All there is: Part 1, with all of it. Part 2. in blue']);
      const end = { state: 'done', status: 'completed', told: 'tool' };
      expect(subagentEnds(stage.dataDir)).toEqual([
        { label: 'below', depth: 2, ...end },
        { label: 'one', depth: 1, ...end },
        { label: 'two', depth: 1, ...end },
      ]);
      // Each call has exactly the result that its sub-agent gave, and nobody else is notified.
      const results = readStore(stage.dataDir, `select state from toolCalls where name = 'sessions_spawn'`);
      expect(results).toEqual([{ state: 'done' }, { state: 'done' }, { state: 'done' }]);
      expect(readStore(stage.dataDir, `select id from inbox where sourceKey like 'child:%'`)).toEqual([]);
      // A call that a kill broke off is recorded too, with unknown cost.
      const [ledger] = readStore(
        stage.dataDir,
        `select count(*) as calls, sum(inputTokens) as inputTokens, sum(outputTokens) as outputTokens from modelCalls
       where state = 'settled'`,
      );
      expect(ledger).toEqual({
        calls: answered,
        inputTokens: answered * used.input_tokens,
        outputTokens: answered * used.output_tokens,
      });
      const [own] = readStore(stage.dataDir, 'select sum(promptTokens) as tokens from children');
      const [below] = readStore(
        stage.dataDir,
        `select sum(inputTokens) as tokens from modelCalls join runs on runs.id = modelCalls.runId
        where runs.laneKey like 'agent:%'`,
      );
      expect(own).toEqual(below);
      expect(stage.model.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    },
  );
});
