import { join } from 'node:path';
import { describe, test } from 'vitest';
import { noticesFor } from '../../src/texts/notices.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { blocksOf, lastUserText } from '../platforms/anthropic/wire.ts';
import { countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { ada, said, startTelegramGateway, untilSaid } from './telegram-gateway.ts';
import { until } from './until.ts';

const unavailable = 'I cannot reach the model at the moment. Please try again later.';
const refused = 'The model could not take this request. My owner finds the reason in the log.';
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
  { what: 'a page of a proxy', fault: { garbage: '<html>502 Bad Gateway</html>' } },
];

const lasting: readonly { readonly what: string; readonly fault: Reply; readonly notice?: string }[] = [
  { what: 'nothing at all', fault: { hang: true } },
  { what: 'half a stream and then silence', fault: { chunks: ['Once ', 'upon ', 'a time'], silentAfter: 2 } },
  { what: 'half a stream and then a cut', fault: { chunks: ['Once ', 'upon ', 'a time'], cutAfter: 2 } },
  { what: 'half a stream and a polite end', fault: { chunks: ['Once ', 'upon ', 'a time'], endAfter: 2 } },
  {
    what: 'half a stream and an error',
    fault: { chunks: ['Once ', 'upon ', 'a time'], midStreamError: 'overloaded_error', afterChunks: 2 },
  },
  {
    what: 'half a tool call and a cut',
    fault: { toolCalls: [{ name: 'list', input: { path: 'somewhere' } }], cutAfter: 1 },
  },
  { what: 'a refused request', fault: { status: 400, message: 'no' }, notice: refused },
];

const deep = `{"path":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
const { answerEmpty, answerCut, answerCutEmpty } = noticesFor('en');
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

describe.concurrent('a message that the model answers with', () => {
  test.for(passing)(
    '$what is answered once when the model is back',
    async ({ fault }, { expect, onTestFinished }) => {
      const { telegram, model, dataDir } = await startTelegramGateway({ config: impatient }, onTestFinished);
      model.script((body, count) => (count === 1 ? fault : { text: `You said: ${lastUserText(body)}` }));
      telegram.userSends({ from: ada, text: 'Hello?' });
      await untilSaid(telegram, { chat: ada.id, text: 'You said: Hello?' });
      await untilAtRest(dataDir, 1);
      expect(said(telegram, ada.id)).toEqual(['You said: Hello?']);
      expect(model.requests.map(({ body }) => body.messages.length)).toEqual([1, 1]);
      expect(countTold(dataDir, ['Hello?'])).toEqual([1]);
      expect(findBreaches(dataDir)).toEqual([]);
    },
  );

  test.for(lasting)(
    '$what fails with a notice, and the conversation goes on',
    async ({ fault, notice = unavailable }, { expect, onTestFinished }) => {
      const { telegram, model, dataDir } = await startTelegramGateway({ config: impatient }, onTestFinished);
      model.script((body, count) => (count === 1 ? fault : { text: `You said: ${lastUserText(body)}` }));
      telegram.userSends({ from: ada, text: 'Hello?' });
      await untilSaid(telegram, { chat: ada.id, text: notice });
      telegram.userSends({ from: ada, text: 'And now?' });
      await untilSaid(telegram, { chat: ada.id, text: /^You said: .*And now\?$/s });
      await untilAtRest(dataDir, 2);
      expect(said(telegram, ada.id)).toHaveLength(2);
      expect(readStore(dataDir, 'select outcome from inbox order by seq')).toEqual([
        { outcome: 'failed' },
        { outcome: 'answered' },
      ]);
      expect(model.requests.map(({ refusal }) => refusal)).toEqual(model.requests.map(() => undefined));
      expect(countTold(dataDir, ['Hello?', 'And now?'])).toEqual([1, 1]);
      expect(findBreaches(dataDir)).toEqual([]);
    },
  );

  test('half a stream in a group takes its preview back and marks the message', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ config: impatient }, onTestFinished);
    const chat = telegram.world.addSupergroup('team').chat.id;
    const gate = createGate();
    const chunks = ['Once ', 'upon ', 'a time'];
    model.script([{ chunks, hold: { gate, afterChunks: 2 }, cutAfter: 2 }]);
    const asked = telegram.userSends({ chat, from: ada, text: '@ParleyTestBot tell me a story' });
    await untilSaid(telegram, { chat, text: 'Once upon' });
    gate.open();
    const reaction = () =>
      telegram.messages(chat).find(({ messageId }) => messageId === asked.messageId)?.botReaction;
    await telegram.waitFor(() => reaction() === '😢');
    await untilAtRest(dataDir, 1);
    expect(said(telegram, chat)).toEqual([]);
    expect(readStore(dataDir, 'select outcome from inbox')).toEqual([{ outcome: 'failed' }]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test.for(unsaid)(
    '$what is reported, and the conversation goes on',
    async ({ replies, told, outcome, reason }, { expect, onTestFinished }) => {
      const { telegram, model, dataDir } = await startTelegramGateway({ config: impatient }, onTestFinished);
      model.script((body, count) => replies[count - 1] ?? { text: `You said: ${lastUserText(body)}` });
      telegram.userSends({ from: ada, text: 'Hello?' });
      for (const text of told) await untilSaid(telegram, { chat: ada.id, text });
      telegram.userSends({ from: ada, text: 'And now?' });
      await untilSaid(telegram, { chat: ada.id, text: /^You said: .*And now\?$/s });
      await untilAtRest(dataDir, 2);
      expect(said(telegram, ada.id)).toHaveLength(told.length + 1);
      expect(readStore(dataDir, 'select outcome, outcomeReason from inbox order by seq')).toEqual([
        { outcome, outcomeReason: reason },
        { outcome: 'answered', outcomeReason: null },
      ]);
      expect(model.requests.map(({ refusal }) => refusal)).toEqual(model.requests.map(() => undefined));
      expect(findBreaches(dataDir)).toEqual([]);
    },
  );

  test('nothing in a group is marked at the message', async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ config: impatient }, onTestFinished);
    const chat = telegram.world.addSupergroup('team').chat.id;
    model.script([{ text: ' ' }, {}]);
    const asked = telegram.userSends({ chat, from: ada, text: '@ParleyTestBot hello?' });
    const reaction = () =>
      telegram.messages(chat).find(({ messageId }) => messageId === asked.messageId)?.botReaction;
    await telegram.waitFor(() => reaction() === '😢');
    await untilAtRest(dataDir, 1);
    expect(readStore(dataDir, 'select outcome, outcomeReason from inbox')).toEqual([
      { outcome: 'failed', outcomeReason: 'empty answer' },
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('429 for longer is told once that the model is busy, and can be stopped', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({}, onTestFinished);
    model.script(() => ({ status: 429, retryAfter: 30 }));
    telegram.userSends({ from: ada, text: 'Hello?' });
    await untilSaid(telegram, { chat: ada.id, text: /^The model is busy/ });
    telegram.userSends({ from: ada, text: '/stop' });
    await untilSaid(telegram, { chat: ada.id, text: 'Stopped.' });
    await untilAtRest(dataDir, 2);
    expect(said(telegram, ada.id)).toHaveLength(2);
    expect(model.requests).toHaveLength(1);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

const TEST_PLUGIN = join(import.meta.dirname, 'faulty-tools.ts');

describe.concurrent('a tool that', () => {
  test('throws is told to the model, which answers', async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ env: { TEST_PLUGIN } }, onTestFinished);
    model.script([
      { toolCalls: [{ name: 'explode' }, { name: 'explode', input: { twice: true } }] },
      { text: 'It broke.' },
    ]);
    telegram.userSends({ from: ada, text: 'Heat the house.' });
    await untilSaid(telegram, { chat: ada.id, text: 'It broke.' });
    await untilAtRest(dataDir, 1);
    const results = (model.requests[1]?.body.messages.at(-1) ?? { role: 'user', content: [] }) as never;
    expect(blocksOf(results).map((block) => [block.type, block.is_error])).toEqual([
      ['tool_result', true],
      ['tool_result', true],
    ]);
    expect(JSON.stringify(results)).toContain('the boiler burst');
    expect(said(telegram, ada.id)).toEqual(['It broke.']);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('throws and leaves the model without words is told to the person', async ({
    expect,
    onTestFinished,
  }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ env: { TEST_PLUGIN } }, onTestFinished);
    model.script([{ toolCalls: [{ name: 'explode' }] }, {}, {}]);
    telegram.userSends({ from: ada, text: 'Heat the house.' });
    await untilSaid(telegram, { chat: ada.id, text: 'Sorry, I could not finish that: explode failed.' });
    await untilAtRest(dataDir, 1);
    expect(said(telegram, ada.id)).toHaveLength(1);
    expect(readStore(dataDir, 'select outcome from inbox')).toEqual([{ outcome: 'failed' }]);
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('hangs ends with the time of the run, and the conversation goes on', async ({
    expect,
    onTestFinished,
  }) => {
    const settings = { env: { TEST_PLUGIN }, config: { run: { timeoutMs: 2000 } } };
    const { telegram, model, dataDir } = await startTelegramGateway(settings, onTestFinished);
    model.script((_body, count) =>
      count === 1 ? { toolCalls: [{ name: 'hang' }] } : { text: 'Back again.' },
    );
    telegram.userSends({ from: ada, text: 'Wait for ever.' });
    await untilSaid(telegram, { chat: ada.id, text: 'Sorry, that took too long and I had to stop.' });
    telegram.userSends({ from: ada, text: 'And now?' });
    await untilSaid(telegram, { chat: ada.id, text: 'Back again.' });
    await untilAtRest(dataDir, 2);
    expect(model.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined]);
    expect(JSON.stringify(model.requests[1]?.body.messages)).toContain('outcome is unknown');
    expect(findBreaches(dataDir)).toEqual([]);
  });

  test('hangs is left behind by /stop', async ({ expect, onTestFinished }) => {
    const { telegram, model, dataDir } = await startTelegramGateway({ env: { TEST_PLUGIN } }, onTestFinished);
    model.script((_body, count) =>
      count === 1 ? { toolCalls: [{ name: 'hang' }] } : { text: 'Back again.' },
    );
    telegram.userSends({ from: ada, text: 'Wait for ever.' });
    await model.waitForRequest(1);
    await untilStarted(dataDir);
    telegram.userSends({ from: ada, text: '/stop' });
    telegram.userSends({ from: ada, text: 'And now?' });
    await untilSaid(telegram, { chat: ada.id, text: 'Back again.' });
    await untilAtRest(dataDir, 3);
    expect(said(telegram, ada.id)).toEqual(['Stopped.', 'Back again.']);
    expect(readStore(dataDir, 'select outcome from inbox order by seq')).toEqual([
      { outcome: 'cancelled' },
      { outcome: 'answered' },
    ]);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

function untilStarted(dataDir: string): Promise<void> {
  return until(() => readStore(dataDir, `select 1 from toolCalls where state = 'started'`).length > 0, {
    what: 'a tool at work',
  });
}
