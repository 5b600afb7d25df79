/** `/subagents` from the platform's event to the store: who sees what, and who may direct whom. */
import { expect, it } from 'vitest';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { readConversationChildren } from '../../src/store/reads/read-activity.ts';
import { readWaitingItems } from '../../src/store/reads/read-waiting-items.ts';
import { unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { aFamilyWorker } from '../store/family.ts';
import { holdRow, isRowHeld } from '../store/hold-row.ts';
import { type Account, anAccount, createIntakeFixture, refOf, type Scene } from './support/intake-fixture.ts';
import { spawnOne } from './support/spawn-one.ts';

describeEachDatabase('/subagents', (open, beside) => {
  /** Returns a conversation whose run has spawned one child, and people who write in it. */
  const aScene = async ({ byOwner = false, ...over }: Partial<Scene> & { byOwner?: boolean } = {}) => {
    const [ann, bob, boss] = [anAccount('alpha'), anAccount('alpha'), anAccount('alpha')];
    const town = createIntakeFixture(open(), { config: { owners: [refOf(boss)] } });
    const where = { ...over, mentionsBot: true };
    const laneKey = town.laneOf(await town.send(byOwner ? boss : ann, 'go', where));
    const run = await town.worker.claimRun(laneKey);
    const { id, childLane } = await spawnOne(open(), run);
    const to: Account = over.group === undefined ? ann : { ...ann, peer: over.group };
    const ask = async (from: Account, text: string, isAdmin = false) => {
      await town.send(from, text, { ...where, isAdmin });
      return (await town.said(to)).at(-1);
    };
    const child = async () =>
      (await open().read(readConversationChildren, { laneKeys: [laneKey], limit: 5 })).find(
        (one) => one.id === id,
      );
    return { ...{ town, laneKey, run, childLane }, ann, bob, boss, id, ask, child };
  };

  it('lists the sub-agents of the conversation with their state, and shows one', async () => {
    const { ann, id, ask } = await aScene();
    const short = id.slice(0, 5);
    expect(await ask(ann, '/subagents')).toBe(
      `${short} “research”: queued\nUse /subagents info, log, steer or stop plus the id.`,
    );
    expect(await ask(ann, `/subagents info ${short}`)).toBe(
      `${short} “research”: queued\nAgent main, depth 1, tokens: 0, cost $0.0000`,
    );
    expect(await ask(ann, `/subagents log ${short}`)).toBe(`“research” (${short}) hasn’t said anything yet.`);
    expect(await ask(ann, '/subagents info zzzzz')).toContain('There’s no sub-agent “zzzzz” here.');
    const elsewhere = await aScene();
    expect(await elsewhere.ask(elsewhere.ann, `/subagents stop ${short}`)).toContain('There’s no sub-agent');
    expect(await ask(ann, '/subagents')).toContain('queued');
  });

  it('stops a sub-agent, which ends as stopped', async () => {
    const { ann, id, ask, child } = await aScene();
    const short = id.slice(0, 5);
    expect(await ask(ann, `/subagents stop ${short}`)).toBe(`I’m stopping “research” (${short}).`);
    expect(await child()).toMatchObject({ state: 'done', status: 'stopped' });
    expect(await ask(ann, `/subagents stop ${short}`)).toContain('has already ended');
    expect(await ask(ann, `/subagents steer ${short} faster`)).toContain('has already ended');
  });

  it('steers a sub-agent with a message that waits in its lane', async () => {
    const { ann, id, ask, childLane } = await aScene();
    expect(await ask(ann, `/subagents steer ${id} Only this year`)).toContain('I’ve passed that on');
    const items = await open().read(readWaitingItems, { laneKey: childLane });
    expect(items.map(({ excerpt }) => excerpt)).toEqual(['look it up', 'Only this year']);
  });

  it('lets only the starter, an admin or the owner direct a sub-agent in a group', async () => {
    const group = unique('g');
    const { ann, bob, id, ask, child } = await aScene({ group });
    const short = id.slice(0, 5);
    for (const verb of ['info', 'log', 'stop'])
      expect(await ask(bob, `/subagents ${verb} ${short}`)).toBe(
        'Only an admin, or the person who started it, may do that.',
      );
    expect(await ask(bob, `/subagents steer ${short} slower`)).toContain('Only an admin');
    expect(await ask(bob, '/subagents list')).toContain('“research”: queued');
    expect(await child()).toMatchObject({ state: 'queued' });
    expect(await ask(bob, `/subagents info ${short}`, true)).toContain('Agent main');
    expect(await ask(ann, `/subagents stop ${short}`)).toContain('I’m stopping');
  });

  it('shows a linked person the sub-agents of their earlier lane, which report there', async () => {
    const { town, ann, id, ask, laneKey, run, childLane } = await aScene();
    const short = id.slice(0, 5);
    const other = anAccount('beta');
    await town.link(other, ann);
    expect(town.laneOf(await town.send(ann, 'hello'))).not.toBe(laneKey);
    expect(await ask(ann, '/subagents')).toContain(`${short} “research”: queued`);
    expect(await ask(ann, `/subagents info ${short}`)).toContain('Agent main, depth 1');
    const family = aFamilyWorker(open());
    await family.answer(run, 'I have asked somebody.');
    await family.answer(await family.claimRun(childLane), 'found');
    await town.worker.answer(await town.worker.claimRun(laneKey), 'This was found.');
    expect((await town.said(ann)).at(-1)).toBe('This was found.');
    await town.send(other, '/subagents');
    expect((await town.said(other)).at(-1)).not.toContain('research');
  });

  it.runIf(beside.dialect === 'postgres')(
    'locks both lanes in order to stop a sub-agent of the earlier lane',
    async () => {
      const { town, ann, id, ask, laneKey } = await aScene();
      await town.link(anAccount('beta'), ann);
      const here = town.laneOf(await town.send(ann, 'hello'));
      expect(laneKey < here).toBe(true);
      const release = await holdRow(beside, 'lanes', here);
      const asked = ask(ann, `/subagents stop ${id}`);
      await expect.poll(() => isRowHeld(beside, 'lanes', laneKey)).toBe(true);
      await release();
      expect(await asked).toContain('I’m stopping');
    },
  );

  it('refuses to steer a sub-agent of higher authority, and lends it none', async () => {
    const group = unique('g');
    const owned = await aScene({ group, byOwner: true });
    expect(await owned.ask(owned.bob, `/subagents steer ${owned.id} go on`, true)).toContain(
      'has more rights than you have here',
    );
    expect(await open().read(readWaitingItems, { laneKey: owned.childLane })).toHaveLength(1);
    const theirs = await aScene({ group: unique('g') });
    await theirs.ask(theirs.boss, `/subagents steer ${theirs.id} go on`);
    const rows = await open().read(authorities, { laneKey: theirs.childLane });
    expect(rows).toEqual(['guest', 'guest']);
  });
});

const authorities: StoreQuery<{ readonly laneKey: string }, readonly string[]> = {
  query: 'authorities',
  run: async (tx, { laneKey }) => {
    const rows = await tx.db.selectFrom('inbox').select('authority').where('laneKey', '=', laneKey).execute();
    return rows.map(({ authority }) => authority);
  },
};
