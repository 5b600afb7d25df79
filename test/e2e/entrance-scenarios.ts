/** A program sends a message and Parley is killed: it enters a conversation's session, unseen in the chat. */
import { runParley } from '../cli/run-parley.ts';
import { readStore } from './conservation.ts';
import type { Scenario } from './kill-scenarios.ts';
import { pageToken } from './page-state.ts';
import { answerQuestion, answerTo } from './questions.ts';
import { until } from './until.ts';

const question = 'question-1';
const answer = answerTo(question);

export const entranceScenarios: readonly Scenario[] = [
  {
    title: 'by parley agent',
    kills: ['item-enqueued:1'],
    channels: ['telegram', 'web', 'terminal', 'discord', 'signal'],
    questions: [question, 'question-2'],
    events: 1,
    expected: [answer],
    prepare: () => ({
      reply: answerQuestion,
      act: async ({ stage: { dataDir }, person }) => {
        person.says(question);
        await until(() => person.standing().includes(answer), { what: 'the person is answered' });
        const [row] = readStore(dataDir, 'select laneKey from inbox order by seq desc');
        const args = ['--session', String(row?.laneKey), '--message', 'question-2'];
        const env = { PARLEY_DATA_DIR: dataDir, PARLEY_PORT: '0', PARLEY_TOKEN: pageToken };
        await runParley(['agent', ...args], env);
      },
    }),
  },
];
