import { describe, expect, it } from 'vitest';
import type { ChannelAction } from '#contracts/channel-abilities.ts';
import { messageId, partKey, threadId } from '#contracts/ids.ts';
import type { Outbound, OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { tools } from '../../../channels/discord/tools.ts';
import { permissions } from '../../platforms/discord/permissions.ts';
import { aDiscordStage, forever } from './discord-stage.ts';

const lunch = { question: 'Lunch?', options: ['Soup', 'Salad'] };

async function aStage(options: Parameters<typeof aDiscordStage>[0] = {}) {
  const stage = await aDiscordStage(options);
  const adapter = stage.newAdapter();
  await adapter.identify(forever);
  const act = (name: string, args: object, route: ReplyRoute): ChannelAction => {
    const tool = tools.find((one) => one.name === name);
    if (!tool) throw new Error(`no tool ${name}`);
    return tool.act(tool.inputSchema.parse(args), route);
  };
  const dm = stage.route(stage.dm.id);
  const here = stage.route(stage.general.id);
  /** Builds the part as the outbox hands it over: what is stored is JSON. */
  const partOf = (name: string, args: object, route = here): Outbound => {
    const content: OutboundContent = { kind: 'action', tool: name, ...act(name, args, route) };
    return { key: partKey(`r:1:${name}`), route, content: JSON.parse(JSON.stringify(content)) };
  };
  const perform = (name: string, args: object, route = here) =>
    adapter.send(partOf(name, args, route), forever);
  return { ...stage, adapter, act, partOf, perform, dmRoute: dm, here };
}

describe('polls', () => {
  it('sends a poll as Discord takes it, once under its nonce', async () => {
    const { perform, server, general } = await aStage();
    const result = await perform('poll', { ...lunch, multiple: true, hours: 768 });
    const [shown] = server.botMessages(general.id);
    expect(result).toEqual({ kind: 'sent', receipts: [shown?.id] });
    expect(shown?.fields.poll).toMatchObject({
      question: { text: 'Lunch?' },
      answers: [{ poll_media: { text: 'Soup' } }, { poll_media: { text: 'Salad' } }],
      allow_multiselect: true,
    });
    expect(await perform('poll', { ...lunch, multiple: true, hours: 768 })).toEqual(result);
    expect(server.botMessages(general.id)).toHaveLength(1);
  });

  it('finds a poll by its question if Discord has forgotten its nonce', async () => {
    const { partOf, adapter, server, general } = await aStage({ nonceWindowMs: 0 });
    const since = Date.now() - 1_000;
    await adapter.send(partOf('poll', { ...lunch, question: 'Dinner?' }), forever);
    const part = partOf('poll', lunch);
    server.fault({ kind: 'drop-answer' }, { route: 'POST /channels/:channel/messages' });
    expect(await adapter.send(part, forever)).toMatchObject({ kind: 'unknown' });
    const sent = server.botMessages(general.id).at(-1)?.id;
    expect(await adapter.lookup.find(part, since, forever)).toEqual({
      kind: 'candidates',
      messageIds: [sent],
    });
  });

  it.each([
    [{ question: 'x'.repeat(301), options: ['a', 'b'] }],
    [{ question: 'one?', options: ['a'] }],
    [{ question: 'many?', options: Array.from({ length: 11 }, (_, index) => `${index}`) }],
    [{ question: 'long?', options: ['a', 'x'.repeat(56)] }],
    [{ question: 'blank?', options: ['a', ' '] }],
    [{ ...lunch, hours: 769 }],
    [{ ...lunch, anonymous: true }],
  ])('takes no poll that Discord would refuse: %j', async (args) => {
    const { act, here } = await aStage();
    expect(() => act('poll', args, here)).toThrow();
  });
});

describe('pins', () => {
  it('pins and unpins a message, and accepts both again', async () => {
    const { perform, server, dm, dmRoute, ada } = await aStage();
    const { id } = server.people.sends({ from: ada, text: 'the plan' });
    const pinned = () => server.world.channel(dm.id).messages.get(id)?.fields.pinned;
    for (const unpin of [false, false, true, true]) {
      expect(await perform('pin', { message: id, unpin }, dmRoute)).toEqual({ kind: 'sent', receipts: [] });
      expect(pinned()).toBe(!unpin);
    }
  });

  it('reports a pin that the bot has no permission for, and keeps the conversation', async () => {
    const { perform, server, general, ada } = await aStage();
    const { id } = server.people.sends({ from: ada, channel: general, text: 'the plan' });
    const refused = { kind: 'failed', failure: { kind: 'rejected' } };
    expect(await perform('pin', { message: id })).toMatchObject(refused);
    general.granted |= permissions.pinMessages;
    expect(await perform('pin', { message: id })).toMatchObject({ kind: 'sent' });
  });
});

describe('threads', () => {
  it('opens one thread on a message, however often it is asked to', async () => {
    const { perform, server, general, ada } = await aStage();
    const { id } = server.people.sends({ from: ada, channel: general, text: 'the plan' });
    for (let times = 0; times < 2; times += 1)
      expect(await perform('thread', { name: 'Plan', message: id })).toEqual({ kind: 'sent', receipts: [] });
    expect(server.world.channels.get(id)).toMatchObject({ name: 'Plan', parentId: general.id });
  });

  it('opens a public thread on no message, and reports one whose answer was lost as unknown', async () => {
    const { perform, server, general } = await aStage();
    const threads = () =>
      [...server.world.channels.values()].filter(({ parentId }) => parentId === general.id);
    expect(await perform('thread', { name: 'Plan' })).toEqual({ kind: 'sent', receipts: [] });
    expect(threads()).toMatchObject([{ name: 'Plan', type: 11 }]);
    server.fault({ kind: 'drop-answer' }, { route: 'POST /channels/:channel/threads' });
    expect(await perform('thread', { name: 'Again' })).toMatchObject({ kind: 'unknown' });
    expect(threads()).toHaveLength(2);
  });

  it('opens none inside a thread or in a direct chat', async () => {
    const { act, perform, here, dmRoute } = await aStage();
    const inThread = { ...here, thread: threadId('77') };
    expect(() => act('thread', { name: 'Plan' }, inThread)).toThrow('already');
    expect(await perform('thread', { name: 'Plan' }, dmRoute)).toMatchObject({
      kind: 'failed',
      failure: { kind: 'rejected' },
    });
  });
});

it('rejects an action that an older or newer version has stored', async () => {
  const { adapter, here, posts } = await aStage();
  for (const [tool, input, id] of [
    ['poll', { question: 'Lunch?' }, undefined],
    ['pin', { unpin: false }, undefined],
    ['pin', { unpin: false }, 'seven'],
    ['thread', {}, undefined],
    ['dance', {}, undefined],
  ] as const) {
    const about = id !== undefined && { messageId: messageId(id) };
    const content: OutboundContent = { kind: 'action', tool, input, summary: 'x', ...about };
    const result = await adapter.send({ key: partKey('r:1:x'), route: here, content }, forever);
    expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
  }
  expect(posts()).toEqual([]);
});
