import { describe, test } from 'vitest';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { blocksOf, lastUserText } from '../platforms/anthropic/wire.ts';
import type { StandingMessage } from '../platforms/telegram/types.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { loadable } from './parley-process.ts';
import { shareGateway, type Talk } from './shared-gateway.ts';
import { startStage } from './stage.ts';
import { ada, said, untilSaid } from './telegram-chat.ts';
import { until } from './until.ts';

const unavailable = 'I can’t reach the model right now. Please try again later.';
const refused =
  'The model rejected this request. Rephrase it or send it again; my owner finds the reason in the log.';
const { answerEmpty, answerCut, answerCutEmpty, modelOversized } = textsFor('en');
const impatient = { run: { modelIdleMs: 4000, timeoutMs: 30_000 } };

const passing: readonly { readonly what: string; readonly fault: Reply }[] = [
  { what: '429 with retry-after', fault: { status: 429, retryAfter: 1 } },
  { what: '529', fault: { status: 529 } },
  { what: '500', fault: { status: 500 } },
  { what: 'a cut connection', fault: { disconnect: true } },
  {
    what: 'an overload in front of the first word',
    fault: { text: 'x', midStreamError: 'overloaded_error' },
  },
  { what: 'garbage', fault: { garbage: 'event: message_start\ndata: {"type": not json\n\n' } },
  // None of it has been shown yet.
  { what: 'half a stream and a cut', fault: { chunks: ['Once ', 'upon ', 'a time'], cutAfter: 2 } },
  { what: 'half a stream and a polite end', fault: { chunks: ['Once ', 'upon ', 'a time'], endAfter: 2 } },
  {
    what: 'half a stream and an error',
    fault: { chunks: ['Once ', 'upon ', 'a time'], midStreamError: 'overloaded_error', afterChunks: 2 },
  },
  { what: 'a page of a proxy', fault: { garbage: '<html>502 Bad Gateway</html>' } },
];

const lasting: readonly {
  readonly what: string;
  readonly fault: Reply;
  readonly notice?: string;
  readonly reason?: string;
}[] = [
  { what: 'nothing at all', fault: { hang: true }, reason: 'idle' },
  {
    what: 'half a stream and then silence',
    fault: { chunks: ['Once ', 'upon ', 'a time'], silentAfter: 2 },
    reason: 'idle',
  },
  {
    what: 'half a tool call and a cut',
    fault: { toolCalls: [{ name: 'list', input: { path: 'somewhere' } }], cutAfter: 1 },
  },
  { what: 'a refused request', fault: { status: 400, message: 'no' }, notice: refused },
  // It may have been billed, so it isn't requested again.
  {
    what: 'an event without end',
    fault: { garbage: `data: ${'x'.repeat(5_000_000)}` },
    notice: modelOversized,
    reason: 'answer too large',
  },
];

const deep = `{"path":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
const [failed, answered] = ['failed', 'answered'];

const unsaid: readonly {
  readonly what: string;
  readonly replies: readonly Reply[];
  readonly told: readonly string[];
  readonly outcome: string | undefined;
  readonly reason: string | null;
}[] = [
  {
    what: 'nothing, twice',
    replies: [{}, { text: ' ' }],
    told: [answerEmpty],
    outcome: failed,
    reason: 'empty answer',
  },
  {
    what: 'half an answer at its limit',
    replies: [{ text: 'Once upon a', stopReason: 'max_tokens' }],
    told: ['Once upon a', answerCut],
    outcome: answered,
    reason: 'cut off at its length limit',
  },
  {
    what: 'nothing at its limit',
    replies: [{ stopReason: 'max_tokens' }],
    told: [answerCutEmpty],
    outcome: failed,
    reason: 'cut off before an answer',
  },
  {
    what: 'a whole answer without its end',
    replies: [{ chunks: ['Once ', 'upon'], cutAfter: 2 }],
    told: ['Once upon'],
    outcome: answered,
    reason: null,
  },
  {
    what: 'a call with 5,000 nested brackets',
    replies: [{ toolCalls: [{ name: 'list', inputJson: deep }] }, { text: 'That was too deep.' }],
    told: ['That was too deep.'],
    outcome: answered,
    reason: null,
  },
];

const TEST_PLUGIN = loadable('faulty-tools');
const aTalk = shareGateway({ config: impatient, env: { TEST_PLUGIN } });

describe.concurrent('a message whose model call fails', () => {
  test.for(passing)('answers once if the model first responds with $what', async ({ fault }, { expect }) => {
    const talk = aTalk();
    const hello = `Hello? ${talk.mark}`;
    talk.script((body, count) => (count === 1 ? fault : { text: `You said: ${lastUserText(body)}` }));
    talk.says(hello);
    await talk.untilSaid(`You said: ${hello}`);
    await talk.untilAtRest(1);
    expect(talk.said()).toEqual([`You said: ${hello}`]);
    expect(talk.requests().map(({ body }) => body.messages.length)).toEqual([1, 1]);
    expect(talk.told(hello)).toBe(1);
  });

  test.for(lasting)(
    'sends a notice for $what from the model, and the conversation continues',
    async ({ fault, notice = unavailable, reason = 'model_error' }, { expect }) => {
      const talk = aTalk();
      talk.script((body, count) => (count === 1 ? fault : { text: `You said: ${lastUserText(body)}` }));
      const [hello, now] = [`Hello? ${talk.mark}`, `And now? ${talk.mark}`];
      talk.says(hello);
      await talk.untilSaid(notice);
      talk.says(now);
      await talk.untilSaid(/^You said: .*And now\? no\d+$/s);
      await talk.untilAtRest(2);
      expect([hello, now].map(talk.told)).toEqual([1, 1]);
      expect(talk.said()).toHaveLength(2);
      expect(talk.rows('inbox', 'outcome, outcomeReason')).toEqual([
        { outcome: 'failed', outcomeReason: reason },
        { outcome: 'answered', outcomeReason: null },
      ]);
      expect(talk.requests().map(({ refusal }) => refusal)).toEqual(talk.requests().map(() => undefined));
    },
  );

  test('deletes the preview and marks the message in a group if the stream is cut', async ({ expect }) => {
    const talk = aTalk('group');
    const gate = createGate();
    const chunks = ['Once ', 'upon ', 'a time'];
    talk.script(() => ({ chunks, hold: { gate, afterChunks: 2 }, cutAfter: 2 }));
    const asked = talk.says(`@ParleyTestBot tell me a story ${talk.mark}`);
    await talk.untilSaid('Once upon');
    gate.open();
    await untilMarked(talk, asked);
    await talk.untilAtRest(1);
    expect(talk.said()).toEqual([]);
    expect(talk.rows('inbox', 'outcome')).toEqual([{ outcome: 'failed' }]);
    expect(talk.requests()).toHaveLength(1);
  });

  test.for(unsaid)(
    'reports $what from the model, and the conversation continues',
    async ({ replies, told, outcome, reason }, { expect }) => {
      const talk = aTalk();
      talk.script((body, count) => replies[count - 1] ?? { text: `You said: ${lastUserText(body)}` });
      talk.says(`Hello? ${talk.mark}`);
      for (const text of told) await talk.untilSaid(text);
      talk.says('And now?');
      await talk.untilSaid(/^You said: .*And now\?$/s);
      await talk.untilAtRest(2);
      expect(talk.said()).toHaveLength(told.length + 1);
      expect(talk.rows('inbox', 'outcome, outcomeReason')).toEqual([
        { outcome, outcomeReason: reason },
        { outcome: 'answered', outcomeReason: null },
      ]);
      expect(talk.requests().map(({ refusal }) => refusal)).toEqual(talk.requests().map(() => undefined));
    },
  );

  test('marks the message in a group if the model answers nothing', async ({ expect }) => {
    const talk = aTalk('group');
    talk.script((_, count) => (count === 1 ? { text: ' ' } : {}));
    const asked = talk.says(`@ParleyTestBot hello? ${talk.mark}`);
    await untilMarked(talk, asked);
    await talk.untilAtRest(1);
    expect(talk.rows('inbox', 'outcome, outcomeReason')).toEqual([
      { outcome: 'failed', outcomeReason: 'empty answer' },
    ]);
    expect(talk.requests()).toHaveLength(2);
  });

  test("says once that the model isn't answering yet during a long 429, and can be stopped", async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startStage({}, onTestFinished);
    model.script(() => ({ status: 429, retryAfter: 30 }));
    telegram.userSends({ from: ada, text: 'Hello?' });
    await untilSaid(telegram, { chat: ada.id, text: /^The model isn’t answering yet/ });
    telegram.userSends({ from: ada, text: '/stop' });
    await untilSaid(telegram, { chat: ada.id, text: 'Stopped.' });
    await untilAtRest(dataDir, 2);
    expect(said(telegram, ada.id)).toHaveLength(2);
    expect(model.requests).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

describe.concurrent('a tool that fails', () => {
  test('reports a tool that throws to the model, which answers', async ({ expect }) => {
    const talk = aTalk();
    const toolCalls = [{ name: 'explode' }, { name: 'explode', input: { twice: true } }];
    talk.script((_, count) => (count === 1 ? { toolCalls } : { text: 'It broke.' }));
    talk.says(`Heat the house. ${talk.mark}`);
    await talk.untilSaid('It broke.');
    await talk.untilAtRest(1);
    const results = (talk.requests()[1]?.body.messages.at(-1) ?? { role: 'user', content: [] }) as never;
    expect(blocksOf(results).map((block) => [block.type, block.is_error])).toEqual([
      ['tool_result', true],
      ['tool_result', true],
    ]);
    expect(JSON.stringify(results)).toContain('the boiler burst');
    expect(talk.said()).toEqual(['It broke.']);
    expect(talk.requests()).toHaveLength(2);
  });

  test('tells the person about a tool that threw if the model answers nothing', async ({ expect }) => {
    const talk = aTalk();
    talk.script((_, count) => (count === 1 ? { toolCalls: [{ name: 'explode' }] } : {}));
    talk.says(`Heat the house. ${talk.mark}`);
    await talk.untilSaid('Sorry, I couldn’t finish that: explode failed.');
    await talk.untilAtRest(1);
    expect(talk.said()).toHaveLength(1);
    expect(talk.rows('inbox', 'outcome')).toEqual([{ outcome: 'failed' }]);
    expect(talk.requests()).toHaveLength(3);
  });

  test("ends a tool that hangs with the run's time limit, and the conversation continues", async ({
    expect,
    onTestFinished,
  }) => {
    const settings = { env: { TEST_PLUGIN }, config: { run: { timeoutMs: 2000 } } };
    const { telegram, model, dataDir } = await startStage(settings, onTestFinished);
    model.script(hangsOnce);
    telegram.userSends({ from: ada, text: 'Wait for ever.' });
    await untilSaid(telegram, { chat: ada.id, text: 'Sorry, that took too long, so I stopped.' });
    telegram.userSends({ from: ada, text: 'And now?' });
    await untilSaid(telegram, { chat: ada.id, text: 'Back again.' });
    await untilAtRest(dataDir, 2);
    expect(model.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined]);
    expect(JSON.stringify(model.requests[1]?.body.messages)).toContain('outcome unknown');
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('abandons a tool that hangs on /stop', async ({ expect }) => {
    const talk = aTalk();
    talk.script(hangsOnce);
    talk.says(`Wait for ever. ${talk.mark}`);
    const atWork = `select 1 from toolCalls join inbox on inbox.runId = toolCalls.runId
      where toolCalls.state = 'started' and laneKey like ?`;
    await until(() => readStore(talk.dataDir, atWork, `%${talk.chat}`).length > 0, {
      what: 'a tool at work',
    });
    talk.says('/stop');
    talk.says('And now?');
    await talk.untilSaid('Back again.');
    await talk.untilAtRest(2);
    expect(talk.said()).toEqual(['Stopped.', 'Back again.']);
    expect(talk.rows('inbox', 'outcome')).toEqual([{ outcome: 'cancelled' }, { outcome: 'answered' }]);
  });
});

const hangsOnce = (_: unknown, count: number): Reply =>
  count === 1 ? { toolCalls: [{ name: 'hang' }] } : { text: 'Back again.' };

function untilMarked({ telegram, chat }: Talk, { messageId }: StandingMessage): Promise<unknown> {
  const reaction = () =>
    telegram.messages(chat).find((message) => message.messageId === messageId)?.botReaction;
  return telegram.waitFor(() => reaction() === '😢');
}
