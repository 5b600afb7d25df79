/** The owner presses a button and Parley is killed: the press decides once, and the stranger is answered. */

import type { Scenario } from './kill-scenarios.ts';
import { answerQuestion, answerTo } from './questions.ts';
import type { Stage } from './stage.ts';
import { ada, eve } from './telegram-chat.ts';
import { until } from './until.ts';

const [first, second] = ['question-1', 'question-2'] as const;

export const approvalScenarios: readonly Scenario[] = [
  {
    title: 'the owner lets a stranger in by a button',
    kills: ['approval-decided:1'],
    channels: ['telegram'],
    config: { owners: [`telegram:${ada.id}`] },
    env: { PARLEY_DM_POLICY: 'pairing' },
    questions: [first, second],
    expected: [
      answerTo(first),
      'telegram:666 “Eve” may write to me now. Approved by telegram:501 “Ada”.',
      'My owner has let you in. I’m answering your message now.',
      answerTo(second),
    ],
    prepare: () => ({
      reply: answerQuestion,
      act: async ({ stage: { telegram }, person }) => {
        person.says(first);
        await until(() => person.standing().includes(answerTo(first)), { what: 'the owner is answered' });
        telegram.userSends({ from: eve, text: second });
        const hasButton = () => telegram.messages(ada.id).some(({ message }) => message.reply_markup);
        await telegram.waitFor(hasButton);
        telegram.people.pressesButton({ chat: ada.id, from: ada, label: 'Approve' });
      },
      // The first message to the stranger contains a random code.
      standing: ({ stage }) => [...saidIn(stage, ada.id), ...saidIn(stage, eve.id).slice(1)],
    }),
  },
];

function saidIn({ telegram }: Stage, chat: number): readonly string[] {
  return telegram.botMessages(chat).map(({ text }) => text);
}
