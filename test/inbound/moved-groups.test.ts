/** A group that gets a new id keeps what it had; a conversation that becomes unreachable ends what it had. */

import { expect, it } from 'vitest';
import { conversationId } from '../../src/contracts/ids.ts';
import type { ReplyRoute } from '../../src/contracts/route.ts';
import type { Store } from '../../src/store/base/command.ts';
import { readLaneStatus } from '../../src/store/reads/read-sessions.ts';
import { aCourier } from '../store/a-conversation.ts';
import { routeFor } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { aFamilyWorker } from '../store/family.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { anAccount, createIntakeFixture, type IntakeFixture } from './support/intake-fixture.ts';

const movedTo = (to: string) => ({ kind: 'migrated', to: conversationId(to) }) as const;
const left = { kind: 'membership', isMember: false } as const;
const back = { kind: 'membership', isMember: true } as const;
const aGroup = () => `-${crypto.randomUUID()}`;

describeEachDatabase('a group that moved to a new id', (open) => {
  it('keeps session, list entries and settings of a group that moved to a new id', async () => {
    const [old, grown, last] = [aGroup(), aGroup(), aGroup()];
    const ann = anAccount('alpha');
    const groups = { [`alpha:${old}`]: { allowFrom: [`alpha:${ann.peer}`] } };
    const access = { groupPolicy: 'allowlist', allowGroups: [`alpha:${old}`], groups } as const;
    const town = createIntakeFixture(open(), { access, config: { owners: [`alpha:${ann.peer}`] } });
    const laneKey = town.laneOf(await town.send(ann, 'hello', { group: old, mentionsBot: true }));
    await town.send(ann, '/activation always', { group: old });
    await town.send(ann, '/queue followup', { group: old });
    await town.worker.answer(await town.worker.claimRun(laneKey), 'hello');

    await town.send(ann, movedTo(grown), { group: old });
    expect(town.laneOf(await town.send(ann, 'unmentioned', { group: grown }))).toBe(laneKey);
    expect((await open().read(readLaneStatus, { laneKey }))?.mode).toBe('followup');
    const eve = anAccount('alpha');
    expect(await town.send(eve, 'let me in', { group: grown })).toEqual({
      kind: 'refused',
      reason: 'sender-not-allowed',
    });

    // Networks report the move in both the old and the new group; the second report undoes nothing.
    await town.send(ann, '/activation mention', { group: grown });
    await town.send(ann, movedTo(grown), { group: old });
    expect(await town.send(ann, 'unmentioned', { group: grown })).toEqual({
      kind: 'ignored',
      reason: 'not-mentioned',
    });

    await town.send(ann, movedTo(last), { group: grown });
    expect(town.laneOf(await town.send(ann, 'once more', { group: last, mentionsBot: true }))).toBe(laneKey);
  });

  it('answers a moved group if the lists name its new id, and keeps its session', async () => {
    const [old, grown] = [aGroup(), aGroup()];
    const ann = anAccount('alpha');
    const listing = (group: string) => {
      const groups = { [`alpha:${group}`]: { requireMention: false } };
      return createIntakeFixture(open(), { access: { groupPolicy: 'allowlist', allowGroups: [], groups } });
    };
    const before = listing(old);
    const laneKey = before.laneOf(await before.send(ann, 'hello', { group: old }));
    await before.send(ann, movedTo(grown), { group: old });
    const after = listing(grown);
    expect(after.laneOf(await after.send(ann, 'hello again', { group: grown }))).toBe(laneKey);
    expect((await listing(aGroup()).send(ann, 'and now?', { group: grown })).kind).toBe('refused');
  });

  it("applies the queue settings configured for a moved group's first or present id", async () => {
    const [old, grown] = [aGroup(), aGroup()];
    const ann = anAccount('alpha');
    const settings = { mode: 'collect', debounceMs: 0, quietMs: 1000, cap: 20, drop: 'summarize' } as const;
    const conversations = { [`alpha:${old}`]: { cap: 7, quietMs: 5 }, [`alpha:${grown}`]: { cap: 9 } };
    const queue = { dm: settings, group: settings, channels: {}, conversations };
    const town = createIntakeFixture(open(), { config: { queue } });
    const laneKey = town.laneOf(await town.send(ann, 'hello', { group: old, mentionsBot: true }));
    const status = () => open().read(readLaneStatus, { laneKey });
    expect(await status()).toMatchObject({ cap: 7, quietMs: 5 });
    await town.send(ann, movedTo(grown), { group: old });
    await town.send(ann, 'hello again', { group: grown, mentionsBot: true });
    expect(await status()).toMatchObject({ cap: 9, quietMs: 5 });
  });

  it("sends the parts due to a moved group's old id in order, even one that was being sent", async () => {
    const [old, grown, last] = [aGroup(), aGroup(), aGroup()];
    const ann = anAccount('alpha');
    const town = createIntakeFixture(open());
    const laneKey = town.laneOf(await town.send(ann, 'hello', { group: old, mentionsBot: true }));
    const run = await town.worker.claimRun(laneKey);
    const parts = ['one', 'two', 'three'].map((text) => aPart(routeFor(run), text));
    await town.worker.answer(run, 'three parts', { parts });
    const courier = aCourier(open(), `alpha/bot/${old}`);
    const onItsWay = await courier.claimPart();
    await town.send(ann, movedTo(grown), { group: old });
    await town.send(ann, left, { group: old });
    await town.send(ann, movedTo(last), { group: grown });
    await courier.record(onItsWay, {
      kind: 'failed',
      failure: { kind: 'unreachable' },
      reason: 'no such chat',
    });

    const texts = [];
    const next = aCourier(open(), `alpha/bot/${last}`);
    for (let n = 0; n < 3; n++) {
      const head = await next.deliver();
      expect(head.part.route.conversation).toBe(last);
      texts.push(head.part.content.kind === 'text' ? head.part.content.text.text : '');
    }
    expect(texts).toEqual(['one', 'two', 'three']);
    expect(await outcomes(open(), laneKey)).toEqual(['answered null']);
  });

  it.each(['announce', 'wait'] as const)(
    "sends sub-agents' results to the group's new id, in mode %s",
    async (mode) => {
      const [old, grown] = [aGroup(), aGroup()];
      const ann = anAccount('alpha');
      const town = createIntakeFixture(open());
      const family = aFamilyWorker(open());
      const laneKey = town.laneOf(await town.send(ann, 'hello', { group: old, mentionsBot: true }));
      const run = await family.claimRun(laneKey);
      const child = await family.spawnOne(run, { mode });
      if (mode === 'wait') await family.park(run);
      else await family.answer(run, 'I have asked somebody.');
      const childRun = await family.claimRun(child.laneKey);
      await town.send(ann, movedTo(grown), { group: old });
      await family.answer(childRun, 'found');
      await town.worker.answer(await family.claimRun(laneKey), 'This was found.');
      const { part } = await aCourier(open(), `alpha/bot/${grown}`).claimPart();
      expect(part).toMatchObject({
        route: { conversation: grown },
        content: { text: { text: 'This was found.' } },
      });
    },
  );

  it("doesn't loop, whatever moves a network reports", async () => {
    const [one, two, three] = [aGroup(), aGroup(), aGroup()];
    const ann = anAccount('alpha');
    const town = createIntakeFixture(open());
    const moves = [
      [one, one],
      [one, two],
      [two, one],
      [two, three],
      [three, one],
    ] as const;
    for (const [from, to] of moves) await town.send(ann, movedTo(to), { group: from });
    const laneKey = town.laneOf(await town.send(ann, 'hello', { group: three, mentionsBot: true }));
    await town.worker.answer(await town.worker.claimRun(laneKey), 'hello');
    expect(await outcomes(open(), laneKey)).toEqual(['answered null']);
  });
});

describeEachDatabase('an unreachable conversation', (open) => {
  it('ends the waiting messages and due parts of an unreachable conversation, and no others', async () => {
    const { town, ann, laneKey, run, other } = await aBusyTown(open());
    await town.send(ann, left);
    await town.worker.answer(run, 'too late');
    expect(await outcomes(open(), laneKey)).toEqual(['failed delivery failed', 'failed unreachable']);
    expect(await undelivered(open(), `alpha/bot/${ann.peer}`)).toEqual(['failed']);
    expect(await undelivered(open(), `alpha/bot/${other.account.peer}`)).toEqual(['pending']);
    expect(await outcomes(open(), other.laneKey)).toEqual(['answered null']);
  });

  it('marks a conversation as unreachable after a refused send, too', async () => {
    const { town, ann, laneKey, run } = await aBusyTown(open());
    await town.worker.answer(run, 'hello', {
      parts: ['one', 'two'].map((text) => aPart(routeFor(run), text)),
    });
    const courier = aCourier(open(), `alpha/bot/${ann.peer}`);
    await courier.deliver({ kind: 'failed', failure: { kind: 'unreachable' }, reason: 'blocked' });
    expect(await undelivered(open(), `alpha/bot/${ann.peer}`)).toEqual(['failed', 'failed']);
    expect(await outcomes(open(), laneKey)).toEqual(['failed delivery failed', 'failed unreachable']);
  });

  it.each([
    ['a message', 'hello again'],
    ['a command', '/status'],
    ['the bot is admitted again', back],
  ] as const)('uses an unreachable conversation again after %s', async (_name, event) => {
    const { town, ann, laneKey, run } = await aBusyTown(open());
    await town.send(ann, left);
    await town.worker.answer(run, 'too late');
    await town.send(ann, event);
    if (event !== 'hello again') await town.send(ann, 'hello again');
    await town.worker.answer(await town.worker.claimRun(laneKey), 'hello to you');
    const courier = aCourier(open(), `alpha/bot/${ann.peer}`);
    if (event === '/status') await courier.deliver();
    const head = await courier.deliver();
    expect(head.part.content).toMatchObject({ text: { text: 'hello to you' } });
    expect((await outcomes(open(), laneKey)).at(-1)).toBe('answered null');
  });

  it('leaves a conversation shared by linked accounts to the other account if one is unreachable', async () => {
    const town = createIntakeFixture(open());
    const [one, two] = [anAccount('alpha'), anAccount('beta')];
    await town.link(one, two);
    const laneKey = town.laneOf(await town.send(one, 'from here'));
    await town.send(two, 'from there');
    await town.send(one, left);
    const run = await town.worker.claimRun(laneKey);
    expect(routeFor(run).channel).toBe('beta');
    await town.worker.answer(run, 'hello');
    expect(await outcomes(open(), laneKey)).toEqual(['failed unreachable', 'answered null']);
  });
});

/** Ann's run is active and her second message waits; Bob's message is answered, but nothing has been sent yet. */
async function aBusyTown(store: Store) {
  const settings = { mode: 'followup', debounceMs: 0, quietMs: 0, cap: 20, drop: 'summarize' } as const;
  const queue = { dm: settings, group: settings, channels: {}, conversations: {} };
  const town: IntakeFixture = createIntakeFixture(store, { config: { queue } });
  const [ann, bob] = [anAccount('alpha'), anAccount('alpha')];
  const laneKey = town.laneOf(await town.send(ann, 'hello'));
  const run = await town.worker.claimRun(laneKey);
  await town.send(ann, 'and?');
  const other = { account: bob, laneKey: town.laneOf(await town.send(bob, 'hello')) };
  await town.worker.answer(await town.worker.claimRun(other.laneKey), 'hello bob');
  return { town, ann, laneKey, run, other };
}

function aPart(route: ReplyRoute, text: string) {
  return { route, content: { kind: 'text', text: { text, spans: [] } }, purpose: 'reply' } as const;
}

async function outcomes(store: Store, laneKey: string): Promise<readonly string[]> {
  return (await readLane(store, laneKey)).inbox.map(({ outcome, reason }) => `${outcome} ${reason}`);
}

/** Reads the states of the conversation's unsent parts. */
function undelivered(store: Store, conversationKey: string): Promise<readonly string[]> {
  return store.read(
    {
      query: 'undelivered',
      run: async (tx, input: { readonly conversationKey: string }) => {
        const rows = await tx.db
          .selectFrom('outbox')
          .select('state')
          .where('conversationKey', '=', input.conversationKey)
          .where('state', '<>', 'sent')
          .orderBy('place')
          .execute();
        return rows.map((row) => row.state);
      },
    },
    { conversationKey },
  );
}
