/** The kill points of an answer's first preview, before the store has the platform's id of it. */
import { discordOf } from './discord-side.ts';
import { type Acting, inGroup, type Play, paced, type Scenario } from './kill-scenarios.ts';
import { answerTo } from './questions.ts';
import { until } from './until.ts';

const question = 'question-1';
const plain = { questions: [question], expected: [answerTo(question)] } as const;

export const previewScenarios: readonly Scenario[] = [
  {
    ...plain,
    title: 'a preview in a group that the journal alone knows',
    kills: ['preview-shown:1'],
    channels: ['telegram'],
    prepare: () => inGroup(),
  },
  {
    ...plain,
    title: 'a preview that the journal alone knows',
    kills: ['preview-shown:1'],
    channels: [],
    longChannels: ['discord'],
    prepare: () => paced,
  },
  {
    ...plain,
    title: 'a preview that nobody knows but Discord',
    kills: ['preview:1'],
    channels: ['discord'],
    prepare: () => ({ ...paced, act: diesUnanswered }),
  },
];

/** The preview is in the chat, and its call is still open. */
const diesUnanswered: Play['act'] = async ({ stage, person, parley }: Acting) => {
  discordOf(stage).server.fault(
    { kind: 'slow', ms: 60_000 },
    { route: 'POST /channels/:channel/messages', times: 1 },
  );
  person.says(question);
  await until(() => person.standing().length > 0, { what: 'the preview stands' });
  await parley.kill();
};
