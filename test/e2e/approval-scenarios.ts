/** The kill points of a question: it is decided once, and what was decided happens at most once. */

import { asksAboutOnce, callsOnce, chatOf, endedAs, expireAll, labels, untilAsked } from './asked-calls.ts';
import { type Acting, callsFirst, type Play, type Scenario } from './kill-scenarios.ts';
import { answerQuestion, answerTo } from './questions.ts';
import type { Stage } from './stage.ts';
import { ada, eve } from './telegram-chat.ts';
import { until } from './until.ts';

const everywhere = ['telegram', 'discord', 'signal', 'web', 'terminal'] as const;
const withButtons = everywhere.filter((channel) => channel !== 'signal');

const askedCall: Play = {
  ...callsOnce,
  standing: ({ person }) => chatOf(person),
};

/** The person asks for a call, is asked, and then this happens. */
function onceAsked(happens: (acting: Acting) => void, tool: 'once' | 'again' = 'once'): Play {
  return {
    ...askedCall,
    ...callsFirst({ name: tool }),
    act: async (acting) => {
      await callsOnce.act(acting);
      await untilAsked(acting.person, tool);
      happens(acting);
    },
  };
}

const presses = ({ person }: Acting) => person.presses(labels.approve);
const approves = onceAsked(presses);
const approved = endedAs('approved by them');

const [first, second] = ['question-1', 'question-2'] as const;

const callOf = {
  config: asksAboutOnce,
  questions: [first],
  expected: [approved, answerTo(first)],
  effects: 1,
} as const;

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
  {
    ...callOf,
    title: 'a call that a person has to approve, about to ask',
    kills: ['approval-asked:1'],
    channels: everywhere,
    prepare: () => ({
      ...askedCall,
      onceBack: async ({ person }) => {
        await untilAsked(person);
        person.presses(labels.approve);
      },
    }),
  },
  {
    ...callOf,
    title: 'a call that a person approves',
    kills: ['approval-decided:1'],
    channels: withButtons,
    prepare: () => approves,
  },
  {
    ...callOf,
    title: 'a call that a person approves by a command',
    kills: ['command-applied:1'],
    channels: ['signal'],
    prepare: () => approves,
  },
  {
    ...callOf,
    title: 'a call that nobody approves in time',
    kills: ['wait-expired:1'],
    channels: everywhere,
    expected: [endedAs('nobody answered in time, so I didn’t do it'), answerTo(first)],
    effects: 0,
    prepare: () => onceAsked(({ stage }) => expireAll(stage.dataDir)),
  },
  {
    // Whether it has had its effect is unknown then, so it isn't made again.
    ...callOf,
    title: 'a call that was approved, about to run',
    kills: ['tool-started:1'],
    mayCutNotice: true,
    channels: everywhere,
    effects: 0,
    prepare: () => approves,
  },
  {
    // Nobody is asked about it again: it has been approved, and has started.
    ...callOf,
    title: 'a call that was approved and may repeat, about to run',
    kills: ['tool-started:1'],
    mayCutNotice: true,
    channels: everywhere,
    expected: [endedAs('approved by them', 'again'), answerTo(first)],
    prepare: () => onceAsked(presses, 'again'),
  },
];

function saidIn({ telegram }: Stage, chat: number): readonly string[] {
  return telegram.botMessages(chat).map(({ text }) => text);
}
