/** The kill points of a task: its dispatches, the replies to them, and the coordinator's turn for the answer. */
import type { WireBody } from '../platforms/anthropic/wire.ts';
import type { Play, Scenario } from './kill-scenarios.ts';
import { answerQuestion, answerTo } from './questions.ts';
import { hasResults } from './subagent-play.ts';
import { delegatesDiamond, isSynthesis, nodeOf, resultOf } from './task-play.ts';

const question = 'question-1';

function delegatesOnce(): Play {
  return {
    act: ({ person }) => person.says(question),
    reply: (body: WireBody) => {
      const node = nodeOf(body);
      if (node !== undefined) return { text: resultOf(node, body) };
      if (!hasResults(body)) return delegatesDiamond;
      return isSynthesis(body) ? answerQuestion(body) : { text: 'NO_REPLY' };
    },
  };
}

export const taskScenarios: readonly Scenario[] = (
  ['task-dispatched:1', 'task-dispatched:3', 'reply-recorded:2', 'aggregating:1'] as const
).map((point) => ({
  title: 'a diamond of subtasks',
  kills: [point],
  channels: ['telegram'],
  longChannels: ['discord', 'signal'],
  questions: [question],
  expected: [answerTo(question)],
  prepare: delegatesOnce,
}));
