/** The tools of a network: what they do there, and that no other network's runs have them. */
import { expect, onTestFinished, test } from 'vitest';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { mention } from '../platforms/discord/people.ts';
import { permissions } from '../platforms/discord/permissions.ts';
import { findBreaches, untilAtRest } from './conservation.ts';
import { discordOf } from './discord-side.ts';
import { openStage, type Stage } from './stage.ts';
import { until } from './until.ts';

const offered = (stage: Stage) =>
  stage.model.requests
    .at(-1)
    ?.body.tools?.map(({ name }) => name)
    .filter((name) => ownTools.has(name));
const ownTools = new Set(['poll', 'pin', 'thread']);

/** Makes the calls one after the other, then answers with the result of each. */
function inTurn(...calls: readonly { readonly name: string; readonly input: object }[]) {
  return (body: WireBody) => {
    const results = body.messages.flatMap(blocksOf).filter((block) => block.type === 'tool_result');
    const next = calls[results.length];
    return next ? { toolCalls: [next] } : { text: results.map((block) => resultOf(block)).join(' | ') };
  };
}

function resultOf(block: object): string {
  const { content } = block as { readonly content?: readonly { readonly text?: string }[] };
  return content?.map(({ text }) => text).join('') ?? '';
}

const lunch = { question: 'Lunch?', options: ['Soup', 'Salad'] };

test('sends a poll and pins messages on Telegram, in runs of Telegram only', async () => {
  const env = { PARLEY_OWNERS: 'telegram:501,web:owner' };
  const stage = await openStage({ env, networks: ['web'] }, onTestFinished);
  const poll = { name: 'poll', input: lunch };
  const pins = ['current', 'last', '999'].map((message) => ({ name: 'pin', input: { message } }));
  stage.model.script(inTurn(poll, ...pins));
  await stage.start();
  const person = stage.person('telegram');
  person.says('Ask them.');
  await until(() => person.standing()[1]?.includes('999') ?? false, { what: 'the answer' });
  const [asked, answer] = stage.telegram.botMessages(501);
  expect(asked?.message.poll).toMatchObject({
    question: 'Lunch?',
    options: [{ text: 'Soup' }, { text: 'Salad' }],
  });
  expect(answer?.text).toContain(`Sent as message ${asked?.messageId}. | Done. | Done. | `);
  expect(answer?.text).toContain('There is no message 999 in this conversation.');
  const [question] = stage.telegram.messages(501);
  expect([...stage.telegram.world.state(501).pinned]).toEqual([question?.messageId, asked?.messageId]);
  expect(offered(stage)).toEqual(['poll', 'pin']);

  stage.model.script(() => ({ text: 'Hello.' }));
  const page = stage.person('web');
  page.says('Hi');
  await until(() => page.standing().includes('Hello.'), { what: 'the answer on the page' });
  expect(offered(stage)).toEqual([]);
  // A stranger may not have them, wherever they are offered.
  const stranger = stage.person('telegram', 502);
  stranger.says('Ask them, too.');
  await until(() => stranger.standing().length === 1, { what: 'the answer to the stranger' });
  expect(offered(stage)).toEqual([]);
  await untilAtRest(stage.dataDir, 3);
  expect(findBreaches(stage.dataDir)).toEqual([]);
});

test('sends a poll, pins a message and opens threads on Discord', async () => {
  const stage = await openStage({ networks: ['discord'] }, onTestFinished);
  const { server, user } = discordOf(stage);
  const ada = user(501);
  const channel = server.world.addChannel(server.world.addGuild('Team', ada), 'general');
  channel.granted |= permissions.pinMessages;
  stage.model.script(
    inTurn(
      { name: 'poll', input: { ...lunch, hours: 2 } },
      { name: 'pin', input: { message: 'last' } },
      { name: 'thread', input: { name: 'About lunch', message: 'last' } },
      { name: 'thread', input: { name: 'Anything else' } },
    ),
  );
  await stage.start({ env: { PARLEY_OWNERS: `discord:${ada.id}` } });
  server.people.sends({ from: ada, channel, text: `${mention(server.bot)} Ask them.` });
  const own = () => server.botMessages(channel.id).filter(({ type }) => type !== 18);
  // A preview may be there first.
  await until(() => own()[1]?.text.endsWith('Done. | Done. | Done.') ?? false, { what: 'the answer' });
  const [poll, answer] = own();
  expect(poll?.fields).toMatchObject({ poll: { question: { text: 'Lunch?' } }, pinned: true });
  expect(answer?.text).toBe(`Sent as message ${poll?.id}. | Done. | Done. | Done.`);
  const threads = [...server.world.channels.values()].filter(({ parentId }) => parentId === channel.id);
  expect(threads.map(({ id, name }) => [id === poll?.id, name])).toEqual([
    [true, 'About lunch'],
    [false, 'Anything else'],
  ]);
  expect(offered(stage)).toEqual(['poll', 'pin', 'thread']);
  await untilAtRest(stage.dataDir, 1);
  expect(findBreaches(stage.dataDir)).toEqual([]);
});
