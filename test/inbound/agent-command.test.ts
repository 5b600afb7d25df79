/** `/agent`: a group, or one of its topics, gets an agent of its own. */
import { expect, it } from 'vitest';
import { agentId, conversationId } from '../../src/contracts/ids.ts';
import { readBindings, removeBinding } from '../../src/store/delivery/bindings.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { anAccount, createIntakeFixture } from './support/intake-fixture.ts';

const aGroup = () => `-${crypto.randomUUID()}`;

describeEachDatabase('/agent', (open) => {
  const aTown = () => {
    const [ann, bob, group] = [anAccount('alpha'), anAccount('alpha'), aGroup()];
    const agents = [
      { id: 'main', name: 'Parley' },
      { id: 'cook', name: 'Auguste', specialty: 'Recipes' },
      { id: 'gardener', name: 'gardener' },
      { id: 'clerk', name: 'clerk' },
    ];
    const bindings = [{ agent: agentId('clerk'), conversation: group }];
    const config = { owners: [`alpha:${ann.peer}`], bindings, agents: agents as never };
    const town = createIntakeFixture(open(), { config, agents });
    /** Says which agent a message in the group reaches, or in one of its topics. */
    const agentIn = async (thread?: string) => {
      const message = { group, mentionsBot: true, ...(thread !== undefined && { thread }) };
      return town.laneOf(await town.send(bob, 'hello', message)).split(':')[0];
    };
    const order = (text: string, thread?: string) =>
      town.send(ann, text, { group, ...(thread !== undefined && { thread }) });
    const lastSaid = async (to = group) => (await town.said({ channel: 'alpha', peer: to })).at(-1);
    return { ...town, ann, bob, group, agentIn, order, lastSaid };
  };

  it('routes by the exact thread, then by the exact group, then by the configured bindings', async () => {
    const { agentIn, order, lastSaid } = aTown();
    expect([await agentIn(), await agentIn('5')]).toEqual(['clerk', 'clerk']);

    expect(await order('/agent Cook', '5')).toEqual({ kind: 'command', command: 'agent' });
    expect(await lastSaid()).toMatch(/^From the next message on, Auguste \(cook\) answers in this topic\./);
    expect([await agentIn(), await agentIn('5'), await agentIn('6')]).toEqual(['clerk', 'cook', 'clerk']);

    // The General topic has no thread id.
    await order('/agent gardener');
    expect(await lastSaid()).toMatch(/gardener answers in this group, and in all topics/);
    expect([await agentIn(), await agentIn('5'), await agentIn('6')]).toEqual([
      'gardener',
      'cook',
      'gardener',
    ]);

    await order('/agent default', '5');
    expect(await lastSaid()).toBe(
      'This topic has no agent of its own any more. From the next message on, gardener answers.',
    );
    expect([await agentIn(), await agentIn('5')]).toEqual(['gardener', 'gardener']);
    await order('/agent default');
    expect(await lastSaid()).toMatch(/clerk answers\.$/);
    expect([await agentIn(), await agentIn('5')]).toEqual(['clerk', 'clerk']);
  });

  it('shows the agent that answers, and lists all of them for an unknown name', async () => {
    const { agentIn, order, lastSaid } = aTown();
    await order('/agent auguste', '5');
    await order('/agent', '5');
    expect(await lastSaid()).toMatch(/^Auguste \(cook\) answers in this topic\./);
    await order('/agent');
    expect(await lastSaid()).toMatch(/^clerk answers here\./);
    await order('/agent baker', '5');
    expect(await lastSaid()).toBe(
      'There is no agent “baker”. The agents are:\n- Parley (main)\n- Auguste (cook): Recipes\n- gardener\n- clerk',
    );
    expect(await agentIn('5')).toBe('cook');
    await order('/agent two words', '5');
    expect(await lastSaid()).toMatch(/^Use \/agent /);
  });

  it('obeys owners, and administrators in their groups, but nobody else', async () => {
    const { agentIn, bob, group, laneOf, lastSaid, send } = aTown();
    await send(bob, '/agent cook', { group, thread: '5' });
    expect(await agentIn('5')).toBe('clerk');
    await send(bob, '/agent cook', { group, thread: '5', isAdmin: true });
    expect(await agentIn('5')).toBe('cook');
    await send(bob, '/agent cook', { thread: '7' });
    expect(await lastSaid(bob.peer)).toMatch(/\/agent/);
    expect(laneOf(await send(bob, 'hello', { thread: '7' }))).toMatch(/^main:/);
  });

  it("gives an owner's topic in a direct chat an agent, but not the direct chat itself", async () => {
    const { ann, lastSaid, laneOf, send } = aTown();
    await send(ann, '/agent cook');
    expect(await lastSaid(ann.peer)).toMatch(/^Parley \(main\) answers here\. \/agent name is for groups/);
    await send(ann, '/agent cook', { thread: '7' });
    expect(laneOf(await send(ann, 'hello', { thread: '7' }))).toMatch(/^cook:/);
    expect(laneOf(await send(ann, 'hello'))).toMatch(/^main:/);
  });

  it('keeps the agents of a group that moved to a new id', async () => {
    const { ann, agentIn, group, order, send, laneOf } = aTown();
    const grown = aGroup();
    await order('/agent gardener');
    await order('/agent cook', '5');
    expect(await agentIn('5')).toBe('cook');
    await send(ann, { kind: 'migrated', to: conversationId(grown) }, { group });
    await send(ann, { kind: 'migrated', to: conversationId(grown) }, { group });
    expect(laneOf(await send(ann, 'hello', { group: grown, mentionsBot: true }))).toMatch(/^gardener:/);
    const inTopic = { group: grown, thread: '5', mentionsBot: true };
    expect(laneOf(await send(ann, 'hello', inTopic))).toMatch(/^cook:/);
    await send(ann, '/agent default', inTopic);
    expect(laneOf(await send(ann, 'hello', inTopic))).toMatch(/^gardener:/);
  });

  it('lets the operator list and remove what was chosen', async () => {
    const { ann, agentIn, group, order } = aTown();
    await order('/agent cook', '5');
    const place = { conversationKey: `alpha/bot/${group}`, thread: '5' };
    const listed = await open().read(readBindings, { limit: 1000 });
    expect(listed.filter(({ conversationKey }) => conversationKey === place.conversationKey)).toEqual([
      { ...place, agentId: 'cook', setBy: `alpha:${ann.peer}`, setAt: expect.any(Number) },
    ]);
    expect(await open().write(removeBinding, place)).toBe(true);
    expect(await agentIn('5')).toBe('clerk');
    expect(await open().write(removeBinding, place)).toBe(false);
  });

  it('ignores a chosen agent that no longer runs', async () => {
    const { ann, agentIn, group, order, bob } = aTown();
    await order('/agent cook', '5');
    expect(await agentIn('5')).toBe('cook');
    const without = createIntakeFixture(open(), { config: { owners: [`alpha:${ann.peer}`] } });
    const inTopic = { group, thread: '5', mentionsBot: true };
    expect(without.laneOf(await without.send(bob, 'hello', inTopic))).toMatch(/^main:/);
  });
});
