/** The kill points of a sub-agent: once it has its place, once it has ended, and when it is stopped from above. */
import { textsFor } from '../../src/texts/chat-texts.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import type { Play, Scenario } from './kill-scenarios.ts';
import { answerQuestion, answerTo } from './questions.ts';
import { hasResults, isSubagent, shows, spawns } from './subagent-play.ts';

const question = 'question-1';
const plain = { channels: ['telegram'], longChannels: ['discord', 'signal'], questions: [question] } as const;
const result = 'Result of the part.';

/** Asks for one sub-agent and answers when its result arrives. */
function spawnsOne(wait: boolean): Play {
  return {
    act: ({ person }) => person.says(question),
    reply: (body: WireBody) => {
      if (isSubagent(body)) return { text: result };
      if (!hasResults(body)) return spawns({ task: 'the part', wait });
      return shows(body, result) ? answerQuestion(body) : { text: 'NO_REPLY' };
    },
  };
}

/** A sub-agent is at work when /stop arrives. */
function stopsAll(wait: boolean): Play {
  const held = createGate();
  return {
    act: async ({ person }) => {
      person.says(question);
      await held.reached;
      person.says('/stop');
    },
    reply: (body: WireBody) => {
      if (isSubagent(body)) return { text: result, hold: { gate: held } };
      return hasResults(body) ? { text: 'NO_REPLY' } : spawns({ task: 'the part', wait });
    },
  };
}

const ends: readonly Scenario[] = (['child-reserved', 'child-finished'] as const).flatMap((point) =>
  [true, false].map(
    (wait): Scenario => ({
      ...plain,
      title: wait ? 'a sub-agent that its parent waits for' : 'a sub-agent that is announced',
      kills: [`${point}:1`],
      expected: [answerTo(question)],
      prepare: () => spawnsOne(wait),
    }),
  ),
);

export const subagentScenarios: readonly Scenario[] = [
  ...ends,
  ...[true, false].map(
    (wait): Scenario => ({
      ...plain,
      title: wait
        ? '/stop of a sub-agent that its parent waits for'
        : '/stop of a sub-agent beside its parent',
      kills: ['tree-stopped:1'],
      expected: [textsFor('en').stopped],
      prepare: () => stopsAll(wait),
    }),
  ),
];
