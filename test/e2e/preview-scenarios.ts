/** The kill points of an answer's first preview, before the store has the platform's id of it. */
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { discordOf } from './discord-side.ts';
import { type Acting, callsFirst, inGroup, type Play, paced, type Scenario } from './kill-scenarios.ts';
import { answerTo } from './questions.ts';
import { until } from './until.ts';

const question = 'question-1';
const plain = { questions: [question], expected: [answerTo(question)] } as const;

const hasResult = (body: WireBody) =>
  body.messages.flatMap(blocksOf).some((block) => block.type === 'tool_result');
const words = (name: string) => `${name} ${'word '.repeat(180).trim()}.`;
const first = words('First');
const tail = Array.from({ length: 30 }, (_, index) => `Line ${index}.`).join(' ');
/** Written in pieces, slowly enough for the first block to arrive while the rest is written. */
const inBlocks: Play = {
  ...paced,
  reply: () => ({ chunks: [`${first}\n\n`, 'And ', ...(tail.match(/.{1,12}/g) ?? [])], chunkDelayMs: 60 }),
};
const silence = { chunks: [...'**NO_REPLY**'], chunkDelayMs: 40 } as const;
const text = 'I am on it, and it takes a while.';
/** The tool says it, and so does the answer. */
const repeats: Play = {
  ...callsFirst({ name: 'message', input: { text } }),
  reply: (body) => (hasResult(body) ? { text } : { toolCalls: [{ name: 'message', input: { text } }] }),
};

export const previewScenarios: readonly Scenario[] = [
  {
    ...plain,
    title: 'silence, while it is written',
    kills: ['streaming:8'],
    channels: ['telegram'],
    longChannels: ['discord', 'signal'],
    expected: [],
    prepare: () => ({ ...paced, reply: () => silence }),
  },
  {
    ...plain,
    title: 'silence behind a tool whose step a preview shows',
    kills: ['tool-finished:1'],
    channels: ['discord'],
    expected: [],
    prepare: () => ({
      ...callsFirst({ name: 'again' }),
      reply: (body) =>
        hasResult(body)
          ? silence
          : { chunks: [...'Let me look at it.'], chunkDelayMs: 40, toolCalls: [{ name: 'again' }] },
    }),
  },
  {
    ...plain,
    title: 'the message tool, whose text the answer repeats',
    kills: ['tool-finished:1'],
    channels: ['telegram'],
    longChannels: ['discord', 'signal'],
    expected: [text],
    prepare: () => repeats,
  },
  // Once its answer is left out, a restart doesn't say it either.
  {
    ...plain,
    title: 'the message tool, whose text the answer repeated',
    kills: ['finished:1'],
    channels: [],
    longChannels: ['telegram', 'discord', 'signal'],
    expected: [text],
    prepare: () => repeats,
  },
  // Nobody knows whether the tool's message arrived, so the answer says it.
  ...(['telegram', 'signal'] as const).map(
    (channel): Scenario => ({
      ...plain,
      title: 'the message tool, whose interrupted text the answer repeats',
      kills: ['sent-not-marked:1'],
      channels: [],
      longChannels: [channel],
      unknown: 'arrived',
      unknownPurpose: 'tool',
      expected: [text, text],
      prepare: () => repeats,
    }),
  ),
  // Discord can be asked.
  {
    ...plain,
    title: 'the message tool, whose interrupted text the answer repeats',
    kills: ['sent-not-marked:1'],
    channels: [],
    longChannels: ['discord'],
    expected: [text],
    prepare: () => repeats,
  },
  {
    ...plain,
    title: 'an answer in blocks, the first of which has arrived',
    kills: ['streaming:24'],
    config: { replies: { stream: 'blocks', blocks: { idleMs: 60_000 } } },
    channels: ['telegram'],
    longChannels: ['discord', 'signal'],
    expected: [first, `And ${tail}`],
    prepare: () => inBlocks,
  },
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
