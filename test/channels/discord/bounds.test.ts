/** Whatever the gateway or the history contains, nothing over the bound is parsed, and nothing around it is lost. */
import { describe, expect, it } from 'vitest';
import { longestJson, longestText } from '#channel-kit/read-json.ts';
import { absurdJson } from '../../support/absurd-json.ts';
import { watchParsing } from '../../support/watch-parsing.ts';
import { hastyBelow } from '../hasty-clock.ts';
import type { RecordingIntake } from '../recording-intake.ts';
import { aDiscordStage } from './discord-stage.ts';

const unreadKeys = (intake: RecordingIntake) => intake.unreadable.map(({ eventKey }) => eventKey);
const long = 'x'.repeat(longestJson);

describe.each(absurdJson)('a message with %s', (_, absurd) => {
  it('keeps the message raw once, without harm to its neighbors or the event loop', async () => {
    const { server, ada, general, begin } = await aDiscordStage();
    const fields = { embeds: JSON.parse(absurd) as unknown };
    const first = await begin();
    const most = watchParsing();
    server.people.sends({ from: ada, channel: general, text: 'before' });
    const live = server.people.sends({ from: ada, channel: general, text: 'absurd', fields });
    server.people.sends({ from: ada, channel: general, text: 'behind' });
    await first.intake.waitFor(() => first.intake.texts.length === 2);
    // Its number was acknowledged, so it isn't sent again.
    server.gateway.cut();
    server.people.sends({ from: ada, channel: general, text: 'resumed' });
    await first.intake.waitFor(() => first.intake.texts.length === 3);
    expect(server.gateway.counts).toMatchObject({ identifies: 1, resumes: 1 });
    expect(unreadKeys(first.intake)).toEqual([`unreadable:message:${live.id}`]);
    await first.adapter.stop();

    const missed = server.people.sends({ from: ada, channel: general, text: 'absurd', fields });
    server.people.sends({ from: ada, channel: general, text: 'last' });
    const { intake } = await begin(first.intake.restarted());
    await intake.waitFor(() => intake.texts.length === 4);
    expect(intake.texts).toEqual(['before', 'behind', 'resumed', 'last']);
    expect(unreadKeys(intake)).toEqual([`unreadable:message:${missed.id}`]);
    expect(intake.gaps).toEqual([]);
    expect(most.bytes).toBeLessThanOrEqual(longestJson);
  });
});

describe('histories', () => {
  it("reads a history that exceeds a response's limit in smaller parts", async () => {
    const { server, ada, general, begin, readings } = await aDiscordStage();
    const first = await begin();
    await first.adapter.stop();
    const texts = ['one', 'two', 'three'];
    for (const text of texts) server.people.sends({ from: ada, channel: general, text });
    const body = [{ content: long }];
    const route = 'GET /channels/:channel/messages';
    server.fault({ kind: 'answer', status: 200, body }, { route, times: 2 });
    const { intake } = await begin(first.intake.restarted());
    await intake.waitFor(() => intake.texts.length === 3);
    expect(intake.texts).toEqual(texts);
    const limits = readings(general.id).map(({ query }) => query.limit);
    expect(limits.slice(0, 5)).toEqual(['100', '10', '1', '1', '1']);
    expect(intake.gaps).toEqual([]);
  });

  it('reports a gap for a history that cannot even be read one by one, and keeps receiving', async () => {
    const { server, ada, general, begin } = await aDiscordStage();
    const first = await begin();
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: general, text: 'missed' });
    const body = [{ content: long }];
    server.fault(
      { kind: 'answer', status: 200, body },
      { route: 'GET /channels/:channel/messages', times: 3 },
    );
    const { intake } = await begin(first.intake.restarted());
    await intake.waitFor(() => intake.gaps.length === 1);
    expect(intake.gaps).toMatchObject([{ conversation: general.id, code: 'history-refused' }]);
    server.people.sends({ from: ada, channel: general, text: 'live' });
    await intake.waitFor(() => intake.texts.length === 1);
  });
});

describe('guilds', () => {
  it('requests a guild whose report is too large, and loses nothing said there', async () => {
    const { server, ada, guild, general, begin } = await aDiscordStage();
    const quiet = server.world.addChannel(guild, 'quiet');
    const first = await begin();
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: quiet, text: 'missed' });
    // A guild that isn't reported at all would be requested after 30 s.
    server.gateway.withheld.add('GUILD_CREATE');
    const { intake } = await begin(first.intake.restarted(), { clock: hastyBelow(30_000) });
    const told = { ...server.platform.render.guild(guild), description: long };
    server.gateway.dispatch({ t: 'GUILD_CREATE', data: () => told });
    server.people.sends({ from: ada, channel: general, text: 'live' });
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts.toSorted()).toEqual(['live', 'missed']);
  });

  it('requests a guild that it joins while connected if the report is too large', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const { intake } = await begin();
    const joined = server.world.addGuild('Club', ada);
    joined.joinedAt = Date.now();
    server.world.addChannel(joined, 'lobby');
    const told = { ...server.platform.render.guild(joined), description: long };
    server.gateway.dispatch({ t: 'GUILD_CREATE', data: () => told });
    const { chat, event } = await intake.waitFor(() =>
      intake.events.find(({ event }) => event.kind === 'membership'),
    );
    expect([chat, event]).toEqual([
      { kind: 'group', parent: joined.id },
      { kind: 'membership', isMember: true },
    ]);
  });
});

describe('frames', () => {
  it.each([
    ['without its number', JSON.stringify({ op: 0, t: 'MESSAGE_CREATE', d: { long } })],
    ['that is too long', `"${'x'.repeat(longestText)}"`],
  ])('closes the connection over a frame %s, and reads what it misses meanwhile', async (_, frame) => {
    const { server, ada, general, begin } = await aDiscordStage();
    const { intake } = await begin();
    server.people.sends({ from: ada, channel: general, text: 'one' });
    await intake.waitFor(() => intake.texts.length === 1);
    server.gateway.says(frame);
    await server.waitFor(() => server.gateway.counts.connections === 2);
    server.people.sends({ from: ada, channel: general, text: 'two' });
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['one', 'two']);
  });
});
