/** The kill points of a summary that a person asks for: before it is made, and after it is stored. */
import { summaryParts } from '../../src/agent/compaction-text.ts';
import { messageTokens } from '../../src/agent/fit-context.ts';
import { fillText, textsFor } from '../../src/texts/chat-texts.ts';
import type { WireBody } from '../platforms/anthropic/wire.ts';
import type { Play, Scenario } from './kill-scenarios.ts';
import { until } from './until.ts';

const questions = ['question-1', 'question-2'] as const;
const story = 'It was a long story. '.repeat(100).trim();
const summary = 'They told each other two stories.';

/** Both answers are long, so that a summary is worth making; nothing is kept verbatim. */
const compacts: Play = {
  act: async ({ person }) => {
    for (const [index, question] of questions.entries()) {
      person.says(question);
      await until(() => person.standing().length > index, { what: `${question} is answered` });
    }
    person.says('/compact');
  },
  reply: ({ system }: WireBody) => ({
    text: JSON.stringify(system ?? '').includes('keep the memory') ? summary : story,
  }),
};

const after = messageTokens({
  parts: summaryParts({ text: summary, lost: [...questions].reverse(), facts: [] }),
});

export const compactionScenarios: readonly Scenario[] = (['claimed:3', 'summary-committed:1'] as const).map(
  (kill): Scenario => ({
    title: '/compact',
    kills: [kill],
    channels: ['telegram'],
    longChannels: ['signal'],
    questions,
    events: 3,
    expected: [story, story, fillText(textsFor('en').compacted, { before: 1500, after })],
    prepare: () => compacts,
  }),
);
