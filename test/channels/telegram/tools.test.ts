import { afterEach, beforeEach, expect, it } from 'vitest';
import type { ChannelAction } from '#contracts/channel-abilities.ts';
import { messageId, partKey, threadId } from '#contracts/ids.ts';
import type { OutboundContent, SendResult } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { tools } from '../../../channels/telegram/tools.ts';
import type { Fault, FaultMatch } from '../../platforms/telegram/faults.ts';
import { startTelegramServer, type TelegramServer } from '../../platforms/telegram/server.ts';
import { ada, newAdapter, routeTo } from './telegram-setup.ts';

const forever = new AbortController().signal;
let server: TelegramServer;
let adapter: ReturnType<typeof newAdapter>;

beforeEach(async () => {
  server = await startTelegramServer();
  server.world.addPrivateChat(ada);
  adapter = newAdapter(server);
  await adapter.identify(forever);
});
afterEach(async () => {
  await adapter.stop();
  await server.close();
});

/** Returns what a call of the tool does, with its arguments as a model writes them. */
function act(name: string, args: object, route: ReplyRoute = routeTo(server, ada.id)): ChannelAction {
  const tool = tools.find((one) => one.name === name);
  if (!tool) throw new Error(`no tool ${name}`);
  return tool.act(tool.inputSchema.parse(args), route);
}

/** Performs the call as the outbox does: what is stored is JSON. */
function perform(
  name: string,
  args: object,
  route: ReplyRoute = routeTo(server, ada.id),
): Promise<SendResult> {
  const content: OutboundContent = { kind: 'action', tool: name, ...act(name, args, route) };
  const stored = JSON.parse(JSON.stringify(content));
  return adapter.send({ key: partKey('r:1:t'), route, content: stored }, forever);
}

const lunch = { question: 'Lunch?', options: ['Soup', ' Salad '] };

it('sends a poll as the Bot API takes it, with its bounds in seconds', async () => {
  const result = await perform('poll', { ...lunch, multiple: true, anonymous: false, minutes: 90 });
  const [shown] = server.botMessages(ada.id);
  expect(result).toEqual({ kind: 'sent', receipts: [String(shown?.messageId)] });
  expect(shown?.message.poll).toMatchObject({
    question: 'Lunch?',
    options: [{ text: 'Soup' }, { text: 'Salad' }],
    allows_multiple_answers: true,
    is_anonymous: false,
    open_period: 5400,
  });
  await perform('poll', lunch);
  expect(server.botMessages(ada.id).at(-1)?.message.poll).toMatchObject({
    is_anonymous: true,
    allows_multiple_answers: false,
  });
});

it('sends a poll into the topic of its conversation', async () => {
  const { chat } = server.world.addSupergroup('Team', { isForum: true });
  const topic = server.world.addTopic(chat.id, 'Food', ada);
  await perform('poll', lunch, { ...routeTo(server, chat.id), thread: threadId(String(topic)) });
  expect(server.botMessages(chat.id)).toMatchObject([{ threadId: topic }]);
});

it.each([
  [{ question: '', options: ['a', 'b'] }],
  [{ question: 'x'.repeat(301), options: ['a', 'b'] }],
  [{ question: 'one?', options: ['a'] }],
  [{ question: 'many?', options: Array.from({ length: 13 }, (_, index) => `${index}`) }],
  [{ question: 'blank?', options: ['a', '  '] }],
  [{ question: 'long?', options: ['a', 'x'.repeat(101)] }],
  [{ ...lunch, minutes: 43_801 }],
  [{ ...lunch, type: 'quiz' }],
])('takes no poll that Telegram would refuse: %j', (args) => {
  expect(() => act('poll', args)).toThrow();
});

it('sends no poll twice if the answer to it is lost', async () => {
  const lost: [Fault, FaultMatch] = [{ kind: 'drop-answer' }, { method: 'sendPoll' }];
  server.fault(...lost);
  expect(await perform('poll', lunch)).toMatchObject({ kind: 'unknown' });
  expect(server.botMessages(ada.id)).toHaveLength(1);
});

it('pins and unpins a message, and accepts both again', async () => {
  const { message_id: id } = server.userSends({ from: ada, text: 'the plan' }).message as {
    message_id: number;
  };
  const args = { message: String(id) };
  for (let times = 0; times < 2; times += 1)
    expect(await perform('pin', args)).toEqual({ kind: 'sent', receipts: [] });
  expect([...server.world.state(ada.id).pinned]).toEqual([id]);
  expect(server.calls.findLast(({ method }) => method === 'pinChatMessage')?.params).toMatchObject({
    disable_notification: true,
  });
  for (let times = 0; times < 2; times += 1) await perform('pin', { ...args, unpin: true });
  expect([...server.world.state(ada.id).pinned]).toEqual([]);
});

it('repeats a pin whose answer was lost, and takes one that is in effect for done', async () => {
  const { message_id: id } = server.userSends({ from: ada, text: 'the plan' }).message as {
    message_id: number;
  };
  server.fault({ kind: 'drop-answer' }, { method: 'pinChatMessage' });
  expect(await perform('pin', { message: String(id) })).toMatchObject({ kind: 'retry' });
  server.fault(
    { kind: 'refuse', code: 400, description: 'Bad Request: CHAT_NOT_MODIFIED' },
    { method: 'pinChatMessage' },
  );
  expect(await perform('pin', { message: String(id) })).toEqual({ kind: 'sent', receipts: [] });
});

it('reports a pin that the bot has no right to, and keeps the conversation', async () => {
  const { chat } = server.world.addSupergroup('Team');
  const { message_id: id } = server.userSends({ chat: chat.id, from: ada, text: '/plan' }).message as {
    message_id: number;
  };
  const refused = await perform('pin', { message: String(id) }, routeTo(server, chat.id));
  expect(refused).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
  expect(refused).toMatchObject({ reason: expect.stringContaining('not enough rights') });
});

it('rejects an action that an older or newer version has stored', async () => {
  const route = routeTo(server, ada.id);
  for (const [tool, input, id] of [
    ['poll', { question: 'Lunch?' }, undefined],
    ['poll', null, undefined],
    ['pin', { message: '1' }, undefined],
    ['pin', { message: '1' }, 'seven'],
    ['thread', { name: 'x' }, undefined],
  ] as const) {
    const about = id !== undefined && { messageId: messageId(id) };
    const content: OutboundContent = { kind: 'action', tool, input, summary: 'x', ...about };
    const result = await adapter.send({ key: partKey('r:1:t'), route, content }, forever);
    expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
  }
});
