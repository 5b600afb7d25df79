/** The kill points of a call that waits for an answer from outside. */
import { answerAll, effectsFile } from './asking-tool.ts';
import { type Acting, callsFirst, type Scenario } from './kill-scenarios.ts';
import { answerTo } from './questions.ts';
import { until } from './until.ts';

const question = 'question-1';
const plain = {
  channels: ['telegram'],
  questions: [question],
  expected: [answerTo(question)],
  effects: 1,
} as const;

const answers = ({ stage }: Acting) => answerAll(effectsFile(stage.home), 'approved');
const asks = callsFirst({ name: 'ask' });
const asksAnswered = callsFirst({ name: 'ask', input: { early: true } });

export const parkedScenarios: readonly Scenario[] = [
  {
    ...plain,
    title: 'a call that waits for an answer from outside, which comes after the restart',
    kills: ['parked:1'],
    prepare: () => ({ ...asks, whileAway: answers }),
  },
  {
    ...plain,
    title: 'a call that waits for an answer from outside, about to wait',
    kills: ['tool-started:1'],
    prepare: () => ({ ...asks, whileAway: answers }),
  },
  {
    ...plain,
    title: 'a call that waits for an answer from outside, which has come',
    kills: ['settled:1'],
    prepare: () => ({
      ...asks,
      act: async (acting) => {
        await asks.act(acting);
        await until(() => acting.stage.effects().length === 1, { what: 'the question is asked' });
        answers(acting);
      },
    }),
  },
  ...(['settled', 'parked'] as const).map(
    (point): Scenario => ({
      ...plain,
      title: 'a call that was answered before it waited',
      kills: [`${point}:1`],
      prepare: () => asksAnswered,
    }),
  ),
];
