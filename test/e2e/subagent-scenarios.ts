/** The kill points of a sub-agent: its place is taken, and it has ended. */
import type { WireBody } from '../platforms/anthropic/wire.ts';
import type { Play, Scenario } from './kill-scenarios.ts';
import { answerQuestion, answerTo } from './questions.ts';
import { hasResults, isSubagent, shows, spawns } from './subagent-play.ts';

const question = 'question-1';
const plain = { channels: ['telegram'], longChannels: ['discord', 'signal'], questions: [question] } as const;
const result = 'Result of the part.';

/** Asks for one sub-agent and answers when its result is there. */
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

export const subagentScenarios: readonly Scenario[] = (['child-reserved', 'child-finished'] as const).flatMap(
  (point) =>
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
