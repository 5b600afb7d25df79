/** Kills of runs that show their calls and reasoning: nothing of it is shown twice, and nothing is left of silence. */
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { type Play, paced, type Scenario } from './kill-scenarios.ts';
import { answerTo, questionOf } from './questions.ts';

const question = 'question-1';
const answer = answerTo(question);
const questions = [question];
const calls = '⚙ again';
const thinking = 'Rome is hot.';
const quoted = `> 💭 ${thinking}`;

const hasResult = (body: WireBody) =>
  body.messages.flatMap(blocksOf).some((block) => block.type === 'tool_result');

/** The model thinks, calls a tool, thinks again and says this, slowly enough to be shown meanwhile. */
function thinksBefore(words: (body: WireBody) => string): Play {
  const call = { thinking, toolCalls: [{ name: 'again' }] };
  return {
    ...paced,
    reply: (body) => (hasResult(body) ? { thinking, chunks: [...words(body)], chunkDelayMs: 40 } : call),
  };
}

const answers = thinksBefore((body) => answerTo(questionOf(body)));
const verbose = { replies: { verbose: 'on', reasoning: 'on' } };
const streamed = { replies: { verbose: 'on', reasoning: 'stream' } };

export const displayScenarios: readonly Scenario[] = [
  ...(['tool-finished:1', 'streaming:8', 'turn-committed:2', 'marked:1'] as const).flatMap((kill) => {
    const shown = (reasoning: string) => ({
      title: 'an answer after its calls and reasoning',
      config: verbose,
      kills: [kill],
      questions,
      expected: [calls, `${reasoning}\n\n${answer}`],
      prepare: () => answers,
    });
    // Telegram has a form of its own for quotes.
    return [
      { ...shown(`💭 ${thinking}`), channels: ['telegram'] },
      { ...shown(quoted), channels: [], longChannels: ['discord', 'signal'] },
    ] satisfies Scenario[];
  }),
  {
    title: 'silence after calls and reasoning',
    config: verbose,
    kills: ['streaming:8'],
    channels: ['telegram'],
    longChannels: ['discord', 'signal'],
    questions,
    expected: [],
    prepare: () => thinksBefore(() => '**NO_REPLY**'),
  },
  ...(['streaming:8', 'preview-sent:1', 'marked:1'] as const).map(
    (kill): Scenario => ({
      title: 'an answer after reasoning that grows',
      config: streamed,
      kills: [kill],
      channels: ['discord'],
      questions,
      expected: [calls, quoted, answer],
      prepare: () => answers,
    }),
  ),
  {
    title: 'silence after reasoning that grows',
    config: streamed,
    kills: ['preview-sent:1'],
    channels: ['discord'],
    questions,
    expected: [],
    prepare: () => thinksBefore(() => '**NO_REPLY**'),
  },
];
