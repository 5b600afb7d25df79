import { describe, expect, it } from 'vitest';
import { patienceMs } from '../../support/patience.ts';
import { ada, begin, general, passes, server, team, useATeam } from './a-team.ts';
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
  it('begins with Hello, READY and the guilds, in this order', async () => {
    const gateway = await connect();
    await until(() => gateway.events('GUILD_CREATE').length === 1);
    expect(gateway.received.map(({ op, s, t }) => [op, s, t])).toEqual([
      [10, null, null],
      [0, 1, 'READY'],
      [0, 2, 'GUILD_CREATE'],
    ]);
    expect(gateway.events('READY')[0]?.d).toMatchObject({
      v: 10,
      guilds: [{ id: team.id, unavailable: true }],
      application: { id: server.bot.id },
    });
    expect(gateway.events('GUILD_CREATE')[0]?.d).toMatchObject({
      members: [{ user: { id: server.bot.id } }],
      channels: [{ id: general.id, type: 0 }],
    });
  });

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
  ])('with %s is closed with %d', async (_, code, act) => {
    const gateway = await open();
    act(gateway);
    expect(await closed(gateway)).toBe(code);
    expect(server.refusals).toMatchObject([{ what: 'gateway', code }]);
    expect(server.gateway.counts.identifies).toBe(0);
  });

  it('is closed when it identifies twice, sends too much, or speaks another version', async () => {
    const twice = await connect();
    twice.identify(usual);
    expect(await closed(twice)).toBe(4005);
    const chatty = await open();
    for (let n = 0; n < 121; n += 1) chatty.send({ op: 1, d: null });
    expect(await closed(chatty)).toBe(4008);
    expect(await closed(await RawGateway.open(server, 'v=9&encoding=json'))).toBe(4012);
    expect(await closed(await RawGateway.open(server, 'v=10&encoding=json&compress=zlib-stream'))).toBe(4002);
  });

  it('answers heartbeats, asks for them, and may fall silent', async () => {
    const gateway = await connect();
    const acks = () => gateway.received.filter(({ op }) => op === 11).length;
    gateway.send({ op: 1, d: 1 });
    await until(() => acks() === 1);
    server.gateway.askForHeartbeat();
    await until(() => gateway.received.some(({ op }) => op === 1));
    server.gateway.acknowledges = false;
    gateway.send({ op: 1, d: 1 });
    await server.waitFor(() => server.gateway.counts.heartbeats === 2);
    server.people.sends({ from: ada, text: 'later' });
    await heard(gateway, 'later');
    expect(acks()).toBe(1);
  });

  it('without heartbeats is closed with 4009', async () => {
    await begin({ heartbeatIntervalMs: 1_000 });
    expect(await closed(await connect())).toBe(4009);
  });

  it('refuses to identify again too soon when the test wants it so', async () => {
    await begin({ identifyIntervalMs: 60_000 });
    await connect();
    const second = await open();
    second.identify(usual);
    await until(() => second.received.some(({ op, d }) => op === 9 && (d as unknown) === false));
  });
});

describe('events', () => {
  it('come by intent, and a direct message says its channel type', async () => {
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

  it('carry no content without MessageContent, but for own messages, DMs and mentions', async () => {
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

  it('of what the bot cannot see are not told', async () => {
    const gateway = await connect();
    server.places.denies(general, 'viewChannel');
    server.people.sends({ from: ada, channel: general, text: 'hidden' });
    const inner = server.places.startsThread({ owner: ada, parent: general, name: 'inner' });
    server.people.sends({ from: ada, channel: inner, text: 'hidden too' });
    server.people.sends({ from: ada, text: 'shown' });
    await heard(gateway, 'shown');
  });

  it('are dropped, doubled or turned round when a test asks', async () => {
    const gateway = await connect();
    const says = (text: string) => server.people.sends({ from: ada, text });
    server.gateway.fault({ kind: 'drop', event: 'MESSAGE_CREATE' });
    says('dropped');
    server.gateway.fault({ kind: 'duplicate' });
    says('twice');
    server.gateway.fault({ kind: 'reverse', count: 3 });
    for (const text of ['1', '2', '3', '4']) says(text);
    await heard(gateway, 'twice', 'twice', '3', '2', '1', '4');
    server.gateway.fault({ kind: 'reverse', count: 9 });
    says('held');
    server.clearFaults();
    says('next');
    await heard(gateway, 'twice', 'twice', '3', '2', '1', '4', 'held', 'next');
  });

  it('go to the shard of their guild, direct ones to the first', async () => {
    const count = 2;
    const shards = [await connect(usual, { shard: [0, count] }), await connect(usual, { shard: [1, count] })];
    const own = Number((BigInt(team.id) >> 22n) % BigInt(count));
    server.people.sends({ from: ada, channel: general, text: 'guild' });
    server.people.sends({ from: ada, text: 'direct' });
    for (const [index, shard] of shards.entries())
      await heard(shard, ...(index === own ? ['guild'] : []), ...(index === 0 ? ['direct'] : []));
  });
});

describe('a session', () => {
  const session = (gateway: RawGateway) => String(gateway.events('READY')[0]?.d.session_id);
  const lost = async (gateway: RawGateway, how: () => void) => {
    how();
    await until(() => gateway.closeCode !== undefined);
    await server.waitFor(() => server.gateway.live.length === 0);
  };
  const isRefused = async (gateway: RawGateway) =>
    until(() => gateway.received.some(({ op, d }) => op === 9 && (d as unknown) === false));

  it('gives a resume what came after its number, with the old numbers, then RESUMED', async () => {
    const first = await connect();
    server.people.sends({ from: ada, text: 'one' });
    await heard(first, 'one');
    await lost(first, () => server.gateway.cut());
    server.people.sends({ from: ada, text: 'two' });
    const second = await open();
    second.resume(session(first), 2);
    await until(() => second.events('RESUMED').length === 1);
    expect(second.received.slice(1).map(({ s, t }) => [s, t])).toEqual([
      [3, 'MESSAGE_CREATE'],
      [4, 'MESSAGE_CREATE'],
      [5, 'RESUMED'],
    ]);
    expect(server.gateway.counts).toMatchObject({ identifies: 1, resumes: 1, replayed: 2 });
  });

  it('takes no number that it never gave', async () => {
    const first = await connect();
    await lost(first, () => first.terminate());
    const second = await open();
    second.resume(session(first), 99);
    expect(await closed(second)).toBe(4007);
  });

  it.each<readonly [string, (gateway: RawGateway) => void]>([
    ['the client said goodbye with 1000', (gateway) => gateway.close(1000)],
    ['the server said so', () => server.gateway.cut({ isResumable: false })],
    ['the server closed with 1000', () => server.gateway.cut({ code: 1000 })],
  ])('is over when %s', async (_, how) => {
    const first = await connect();
    await lost(first, () => how(first));
    server.people.sends({ from: ada, text: 'unheard' });
    const second = await open();
    second.resume(session(first), 1);
    await isRefused(second);
    second.identify(usual);
    await until(() => second.events('READY').length === 1);
    server.people.sends({ from: ada, text: 'heard' });
    await heard(second, 'heard');
  });

  it('is over when it was away for too long, and is told nothing any more', async () => {
    const first = await connect();
    await lost(first, () => first.terminate());
    passes(180_001);
    server.people.sends({ from: ada, text: 'unheard' });
    passes(-180_001);
    const second = await open();
    second.resume(session(first), 1);
    await isRefused(second);
  });

  it('goes on after a silence, in which nothing is heard or said on open connections', async () => {
    const first = await connect();
    server.goSilent();
    server.people.sends({ from: ada, text: 'meanwhile' });
    first.send({ op: 1, d: 1 });
    const second = await RawGateway.open(server);
    const post = callRaw(server, 'POST', `/channels/${general.id}/messages`, { content: 'x' }).then(
      () => 'answered',
      () => 'cut off',
    );
    await server.waitFor(() => server.calls.length === 1);
    expect(first.received.slice(3)).toEqual([]);
    expect(second.received).toEqual([]);
    server.clearFaults();
    await closed(first);
    await closed(second);
    const third = await open();
    third.resume(session(first), 2);
    await heard(third, 'meanwhile');
    expect(server.texts(general.id)).toEqual([]);
    await server.goAway();
    expect(await post).toBe('cut off');
  });

  it('goes on when the client hung up with another code', async () => {
    const first = await connect();
    await lost(first, () => first.close(4000));
    passes(179_000);
    const second = await open();
    second.resume(session(first), 2);
    await until(() => second.events('RESUMED').length === 1);
  });

  it('can be called invalid on an open connection', async () => {
    const gateway = await connect();
    server.gateway.invalidate(false);
    await isRefused(gateway);
    server.people.sends({ from: ada, text: 'unheard' });
    server.gateway.askToReconnect();
    await until(() => gateway.received.some(({ op }) => op === 7));
    expect(texts(gateway)).toEqual([]);
  });
});
