import { describe, expect, it } from 'vitest';
import { patienceMs } from '../../support/patience.ts';
import { ada, begin, general, server, team, useATeam } from './a-team.ts';
import { intents } from './intents.ts';
import { callRaw, RawGateway } from './raw-client.ts';
import type { Wire } from './types.ts';

useATeam();

const { guilds, guildMessages, directMessages, messageContent } = intents;
const usual = guilds | guildMessages | directMessages | messageContent;

const open = async () => {
  const gateway = await RawGateway.open(server);
  await until(() => gateway.received.length > 0);
  return gateway;
};
const connect = async (asked: number = usual, more?: Wire) => {
  const gateway = await open();
  gateway.identify(asked, more);
  await until(() => gateway.events('READY').length === 1);
  return gateway;
};
/** The client's state changes without the server noticing, so it is checked repeatedly. */
const until = async (isSo: () => boolean) => {
  await expect.poll(isSo, { timeout: patienceMs, interval: 5 }).toBe(true);
};
const closed = async (gateway: RawGateway) => {
  await until(() => gateway.closeCode !== undefined);
  return gateway.closeCode;
};
const texts = (gateway: RawGateway) => gateway.events('MESSAGE_CREATE').map(({ d }) => d.content);
const heard = async (gateway: RawGateway, ...expected: readonly string[]) =>
  expect.poll(() => texts(gateway), { timeout: patienceMs, interval: 5 }).toEqual(expected);

describe('a connection', () => {
  const properties = { os: 'linux' };
  it.each<readonly [string, number, (gateway: RawGateway) => void]>([
    ['an unknown op', 4001, (gateway) => gateway.send({ op: 77, d: {} })],
    ['what is no JSON', 4002, (gateway) => gateway.send('{')],
    ['more than 4096 bytes', 4002, (gateway) => gateway.send({ op: 1, d: 'x'.repeat(4096) })],
    ['another op before identifying', 4003, (gateway) => gateway.send({ op: 3, d: {} })],
    ['a wrong token', 4004, (gateway) => gateway.identify(usual, { token: 'wrong' })],
    ['a wrong token in a resume', 4004, (gateway) => gateway.resume('x', 1, { token: 'wrong' })],
    ['no properties', 4002, (gateway) => gateway.identify(usual, { properties: null })],
    ['a wrong shard', 4010, (gateway) => gateway.identify(usual, { shard: [1, 1] })],
    ['intents that do not exist', 4013, (gateway) => gateway.identify(1 << 30)],
    ['intents without a grant', 4014, (gateway) => gateway.identify(intents.guildPresences, { properties })],
  ])('closes a connection after %s with %d', async (_, code, act) => {
    const gateway = await open();
    act(gateway);
    expect(await closed(gateway)).toBe(code);
    expect(server.refusals).toMatchObject([{ what: 'gateway', code }]);
    expect(server.gateway.counts.identifies).toBe(0);
  });

  it('closes a connection that identifies twice, sends too much, or speaks another version', async () => {
    const twice = await connect();
    twice.identify(usual);
    expect(await closed(twice)).toBe(4005);
    const chatty = await open();
    for (let n = 0; n < 121; n += 1) chatty.send({ op: 1, d: null });
    expect(await closed(chatty)).toBe(4008);
    expect(await closed(await RawGateway.open(server, 'v=9&encoding=json'))).toBe(4012);
    expect(await closed(await RawGateway.open(server, 'v=10&encoding=json&compress=zlib-stream'))).toBe(4002);
  });

  it('closes a connection without heartbeats with 4009', async () => {
    await begin({ heartbeatIntervalMs: 1_000 });
    expect(await closed(await connect())).toBe(4009);
  });
});

describe('events', () => {
  it('sends events by intent, and a direct message with its channel type', async () => {
    const all = await connect();
    const direct = await connect(directMessages);
    server.people.sends({ from: ada, channel: general, text: 'guild' });
    server.people.sends({ from: ada, text: 'direct' });
    await heard(all, 'guild', 'direct');
    await heard(direct, 'direct');
    expect(direct.events('GUILD_CREATE')).toEqual([]);
    const [guild, dm] = all.events('MESSAGE_CREATE').map(({ d }) => d);
    expect(dm).toMatchObject({ channel_type: 1 });
    expect(dm).not.toHaveProperty('guild_id');
    expect(guild).toMatchObject({ guild_id: team.id, channel_type: 0, member: { roles: [] } });
  });

  it('sends no content without MessageContent, except in own messages, DMs and mentions', async () => {
    const gateway = await connect(usual & ~messageContent);
    const file = server.world.addFile({ name: 'a.txt', bytes: Buffer.from('x') });
    server.people.sends({ from: ada, channel: general, text: 'secret', files: [file] });
    server.people.sends({ from: ada, channel: general, text: `<@${server.bot.id}> hi` });
    server.people.sends({ from: ada, text: 'direct' });
    await callRaw(server, 'POST', `/channels/${general.id}/messages`, { content: 'own', nonce: 'n' });
    await heard(gateway, '', `<@${server.bot.id}> hi`, 'direct', 'own');
    const told = gateway.events('MESSAGE_CREATE').map(({ d }) => d);
    expect(told[0]).toMatchObject({ attachments: [], author: { id: ada.id } });
    expect(told[3]).toMatchObject({ nonce: 'n' });
  });

  it("sends no events from channels that the bot can't see", async () => {
    const gateway = await connect();
    server.places.denies(general, 'viewChannel');
    server.people.sends({ from: ada, channel: general, text: 'hidden' });
    const inner = server.places.startsThread({ owner: ada, parent: general, name: 'inner' });
    server.people.sends({ from: ada, channel: inner, text: 'hidden too' });
    server.people.sends({ from: ada, text: 'shown' });
    await heard(gateway, 'shown');
  });
});

describe('a session', () => {
  it('refuses a resume with a number that it never gave', async () => {
    const first = await connect();
    first.terminate();
    await server.waitFor(() => server.gateway.live.length === 0);
    const second = await open();
    second.resume(String(first.events('READY')[0]?.d.session_id), 99);
    expect(await closed(second)).toBe(4007);
  });
});
