/** What the `message` tool does beyond a text, and a kill: a change is made again, which changes nothing. */
import { callsFirst, type Scenario } from './kill-scenarios.ts';
import { answerTo } from './questions.ts';

const question = 'question-1';

export const messageScenarios: readonly Scenario[] = [
  {
    title: 'the message tool, an edit of what it sent',
    kills: ['sent-not-marked:2'],
    channels: ['telegram'],
    longChannels: ['discord', 'signal'],
    questions: [question],
    expected: ['I am done.', answerTo(question)],
    prepare: () =>
      callsFirst(
        { name: 'message', input: { text: 'I am on it.' } },
        { name: 'message', input: { action: 'edit', message: 'last', text: 'I am done.' } },
      ),
  },
];
