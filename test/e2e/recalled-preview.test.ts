/** A preview that turns out to be reasoning, because a closing mark follows, in a running gateway. */
import { expect, it, onTestFinished } from 'vitest';
import { type RawAnswer, startRawServer } from '../inputs/models/raw-server.ts';
import { sse } from '../inputs/models/read-with.ts';
import { untilAtRest } from './conservation.ts';
import { startStage } from './stage.ts';
import { bob, said, untilSaid } from './telegram-chat.ts';

const saying = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });
const ended = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };

/** Says something to the bot in a group, where the model behind `id` answers with these bytes. */
async function askInGroup(id: string, answer: RawAnswer) {
  const server = await startRawServer();
  server.answer(answer);
  onTestFinished(() => server.close());
  const config = {
    providers: { house: { baseUrl: `${server.url}/v1` } },
    ...{ model: `house/${id}`, titles: false },
  };
  const { telegram, dataDir } = await startStage({ config }, onTestFinished);
  const { chat } = telegram.world.addSupergroup('team');
  telegram.userSends({ chat: chat.id, from: bob, text: `@${telegram.bot.username} Is Ann upset?` });
  return { telegram, chat: chat.id, dataDir };
}

const thoughts = 'Ann seems upset with Bob. I had better be careful about what I say.';

/** An answer whose reasoning has no opening mark, from a model that is known to mark its reasoning. */
function answerAfterThoughts(text: string) {
  const shown = Promise.withResolvers<void>();
  const first = sse([saying(thoughts)], { done: false });
  return { shown, answer: { body: [first, shown.promise, sse([saying(`\n</think>\n\n${text}`), ended])] } };
}

it('replaces a preview that turns out to be reasoning with the answer', async () => {
  const { shown, answer } = answerAfterThoughts('No, she is fine.');
  const { telegram, chat, dataDir } = await askInGroup('gpt-5', answer);
  await untilSaid(telegram, { chat, text: /Ann seems upset/ });
  shown.resolve();
  await untilSaid(telegram, { chat, text: 'No, she is fine.' });
  await untilAtRest(dataDir, 1);
  expect(said(telegram, chat)).toEqual(['No, she is fine.']);
});

it('deletes a preview that turns out to be reasoning when the answer is silence', async () => {
  const { shown, answer } = answerAfterThoughts('NO_REPLY');
  const { telegram, chat, dataDir } = await askInGroup('gpt-5', answer);
  const preview = await untilSaid(telegram, { chat, text: /Ann seems upset/ });
  shown.resolve();
  await untilAtRest(dataDir, 1);
  expect(said(telegram, chat)).toEqual([]);
  expect(telegram.deletedMessages(chat).map(({ messageId }) => messageId)).toEqual([preview.messageId]);
});
