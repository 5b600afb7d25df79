import { describe, expect, it } from 'vitest';
import type { Clock } from '#contracts/clock.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { hastyClock } from '../hasty-clock.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { aReceivingStage, isAsked } from './receiving-stage.ts';
import { patientClock } from './signal-setup.ts';

describe('the account', () => {
  it('notices a changed number within the hour, even if the socket stays connected', async () => {
    let now = Date.now();
    const clock: Clock = { ...hastyClock, now: () => now };
    const { server, ada, begin } = await aReceivingStage('socket');
    const intake = new RecordingIntake();
    const adapter = await begin(intake, { clock });
    Object.assign(server.account, { number: '+15550009999' });
    now += 3_600_000;
    const isOver = await intake.waitFor(() => intake.troubles.find((one) => one?.isOver));
    expect(isOver).toMatchObject({
      code: 'server-changed',
      detail: expect.stringContaining('no longer has the account'),
    });
    await adapter.stop();
    const again = intake.restarted();
    await begin(again, { clock });
    server.people.writes({ from: ada, text: 'to the new number' });
    await again.waitFor(() => again.texts.includes('to the new number'));
  });

  it('notices a changed number at its first message, which is kept until then', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const intake = new RecordingIntake();
    const adapter = await begin(intake);
    Object.assign(server.account, { number: '+15550009999' });
    for (const text of ['first', 'second']) server.people.writes({ from: ada, text });
    await server.waitFor(() => server.posts.filter(({ status }) => status === 200).length === 2);
    await intake.waitFor(() => intake.troubles.find((one) => one?.isOver));
    await adapter.stop();
    const again = intake.restarted();
    await begin(again);
    await again.waitFor(() => again.texts.length === 2);
    expect(again.texts).toEqual(['first', 'second']);
  });
});

describe('groups', () => {
  it('reads groups again at the next message after an hour, in case a change was lost', async () => {
    let now = Date.now();
    const { server, ada, begin } = await aReceivingStage('webhook');
    const team = server.world.addGroup({ name: 'Team', members: [ada, server.account] });
    const intake = new RecordingIntake();
    await begin(intake, { clock: { ...patientClock, now: () => now } });
    const looks = () =>
      server.calls.filter(({ path, answered }) => path.startsWith('/v1/groups') && answered);
    const says = async () => {
      const count = intake.texts.length;
      server.people.writes({ from: ada, to: team, text: 'hello' });
      await intake.waitFor(() => intake.texts.length > count);
    };
    /** The list has been answered, but is only read a moment later. */
    const ranksAs = async (isAdmin: boolean) => {
      while (intake.events.at(-1)?.sender.isAdmin !== isAdmin) await says();
    };
    await server.waitFor(() => looks().length === 1);
    await ranksAs(true);
    const before = looks().length;
    team.admins.delete(ada.uuid);
    await says();
    now += 3_600_001;
    await says();
    await server.waitFor(() => looks().length === before + 1);
    await ranksAs(false);
    expect(looks()).toHaveLength(before + 1);
  });

  it("reads the sender's rank from groups, and when the bot leaves or joins one", async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const bob = server.world.addPerson({ name: 'Bob' });
    const team = server.world.addGroup({ name: 'Team', members: [ada, bob, server.account] });
    const intake = new RecordingIntake();
    await begin(intake);
    await server.waitFor(() => isAsked(server, '/v1/groups'));
    const ranks = () => intake.events.map(({ sender }) => sender.isAdmin);
    server.people.writes({ from: ada, to: team, text: '/stop' });
    server.people.writes({ from: bob, to: team, text: '/stop' });
    await intake.waitFor(() => intake.texts.length === 2);
    expect(ranks()).toEqual([true, false]);

    const { account } = server;
    server.people.changesGroup(ada, team, (group) => {
      group.members.splice(group.members.indexOf(account), 1);
    });
    const out = await intake.waitFor(() => intake.events.find(({ event }) => event.kind === 'membership'));
    expect(out).toMatchObject({
      event: { isMember: false },
      route: { conversation: team.internalId },
      chat: { kind: 'group' },
    });
    server.people.changesGroup(ada, team, (group) => void group.members.push(account));
    const isIn = ({ event }: InboundEnvelope) => event.kind === 'membership' && event.isMember;
    await intake.waitFor(() => intake.events.some(isIn));
    // It also works for an unknown group: the person who adds the bot is asked whether it should answer there.
    const crew = server.world.addGroup({ name: 'Crew', members: [ada, bob] });
    server.people.changesGroup(bob, crew, ({ members }) => void members.push(account));
    await intake.waitFor(() => intake.events.filter(isIn).length === 2);
    const joined = intake.events.filter(isIn);
    expect(joined.map(({ sender, route }) => [sender.id, route.conversation])).toEqual([
      [ada.uuid, team.internalId],
      [bob.uuid, crew.internalId],
    ]);
  });

  it('reads all other groups if one is unreadable', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const odd = server.world.addGroup({ name: 'Odd', members: [ada, server.account] });
    Object.assign(odd, { name: 7 });
    const team = server.world.addGroup({ name: 'Team', members: [ada, server.account] });
    const intake = new RecordingIntake();
    await begin(intake);
    // The list is read a moment later.
    for (const isRanked = () => intake.events.at(-1)?.sender.isAdmin === true; !isRanked(); ) {
      const count = intake.texts.length;
      server.people.writes({ from: ada, to: team, text: '/stop' });
      await intake.waitFor(() => intake.texts.length > count);
    }
  });

  it('reports groups that it left and joined while the store was unavailable, in order', async () => {
    const { server, ada, begin } = await aReceivingStage('webhook');
    const { account } = server;
    const team = server.world.addGroup({ name: 'Team', members: [ada, account] });
    const intake = new RecordingIntake();
    await begin(intake);
    const looks = () =>
      server.calls.filter(({ path, answered }) => path.startsWith('/v1/groups') && answered);
    await server.waitFor(() => looks().length === 1);
    intake.failNext('store_unavailable', 1_000_000);
    server.people.changesGroup(ada, team, ({ members }) => void members.pop());
    await intake.waitFor(() => intake.attempts > 0);
    server.people.changesGroup(ada, team, ({ members }) => void members.push(account));
    await server.waitFor(() => looks().length === 3);
    intake.recover();
    await intake.waitFor(() => intake.events.length === 2);
    expect(intake.events.map(({ event }) => event)).toEqual([
      { kind: 'membership', isMember: false },
      { kind: 'membership', isMember: true },
    ]);
  });
});
