import fc from 'fast-check';
import { beforeEach, expect, it } from 'vitest';
import { type QueueMode, queueModes } from '../../src/contracts/queue-settings.ts';
import { type RunTarget, withoutQuote } from '../../src/contracts/route.ts';
import type { DmScope } from '../../src/sessions/session-key-of.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { takeSteers } from '../../src/store/lanes/steer.ts';
import { endWithout, framing, routeFor } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { holds } from '../support/holds.ts';
import { isLong } from '../support/long-run.ts';
import { patienceMs } from '../support/patience.ts';
import {
  type Account,
  anAccount,
  createIntakeFixture,
  type IntakeFixture,
  refOf,
} from './support/intake-fixture.ts';

const queueWith = (mode: QueueMode, debounceMs = 0) => {
  const settings = { mode, debounceMs, quietMs: 0, cap: 100, drop: 'summarize' } as const;
  return { dm: settings, group: settings, channels: {}, conversations: {} };
};

describeEachDatabase('the authority of linked accounts', (open, beside) => {
  beforeEach(() => beside.sql('delete from "linkGuesses"'));

  it('gives linked accounts the authority of the least trusted one while the link lasts', async () => {
    const [owner, guest] = [anAccount('alpha'), anAccount('beta')];
    const town = createIntakeFixture(open(), { config: { owners: [refOf(owner)] } });
    const authorityOf = async (from: Account) => {
      const run = await town.worker.claimRun(town.laneOf(await town.send(from, 'hello')));
      await town.worker.answer(run, 'hello');
      return run.authority;
    };
    expect([await authorityOf(owner), await authorityOf(guest)]).toEqual(['owner', 'guest']);
    await town.link(owner, guest);
    for (const one of [owner, guest])
      expect((await town.said(one)).at(-1)).toContain('different permissions');
    expect([await authorityOf(owner), await authorityOf(guest)]).toEqual(['guest', 'guest']);
    // A command applies to the account it came from, and no other account's text is involved.
    await town.send(owner, '/whoami');
    expect((await town.said(owner)).at(-1)).toContain('here as owner');
    await town.send(guest, '/whoami');
    expect((await town.said(guest)).at(-1)).toContain('here as guest');
    await town.send(owner, `/link remove ${refOf(guest)}`);
    expect([await authorityOf(owner), await authorityOf(guest)]).toEqual(['owner', 'guest']);
  });

  it('keeps the authority of linked accounts if all have the same', async () => {
    const [one, two] = [anAccount('alpha'), anAccount('beta')];
    const town = createIntakeFixture(open(), { config: { owners: [refOf(one), refOf(two)] } });
    await town.link(one, two);
    expect((await town.said(two)).at(-1)).not.toContain('different permissions');
    const run = await town.worker.claimRun(town.laneOf(await town.send(two, 'hello')));
    expect(run.authority).toBe('owner');
  });

  it("doesn't let a message join the run of another configured account", async () => {
    const [owner, guest] = [anAccount('alpha'), anAccount('beta')];
    const identityLinks = { alice: [refOf(owner), refOf(guest)] };
    const town = createIntakeFixture(open(), { config: { owners: [refOf(owner)], identityLinks } });
    const laneKey = town.laneOf(await town.send(owner, 'begin'));
    const run = await town.worker.claimRun(laneKey);
    await town.send(guest, 'and do this with its rights');
    const boundary = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
    expect(boundary.steers).toEqual([]);
    await town.worker.answer(run, 'done');
    expect((await town.worker.claimRun(laneKey)).authority).toBe('guest');
  });
});

describeEachDatabase('/stop with linked accounts', (open, beside) => {
  beforeEach(() => beside.sql('delete from "linkGuesses"'));

  it('stops the run and cancels the waiting messages of all linked accounts', async () => {
    const town = createIntakeFixture(open(), { config: { queue: queueWith('followup') } });
    const [one, two] = [anAccount('alpha'), anAccount('beta')];
    await town.link(one, two);
    const laneKey = town.laneOf(await town.send(one, 'begin'));
    const run = await town.worker.claimRun(laneKey);
    await town.send(one, 'then this');
    await town.send(two, 'and this');
    await town.send(two, '/stop');
    const boundary = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
    expect(boundary.cancelReason).toBe('stop');
    await endWithout(open(), run, 'stop', { mayKeepLane: true });
    const { inbox } = await readLane(open(), laneKey);
    expect(inbox.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual(
      Array(3).fill('cancelled stop'),
    );
  });

  it('stops a run in the lane that the account used before the link', async () => {
    const town = createIntakeFixture(open());
    const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
    const run = await town.worker.claimRun(town.laneOf(await town.send(joiner, 'begin')));
    await town.link(asker, joiner);
    await town.send(joiner, '/stop');
    expect((await town.said(joiner)).at(-1)).toBe('Stopped.');
    const boundary = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
    expect(boundary.cancelReason).toBe('stop');
  });

  it("doesn't cancel messages of a person with the same id on another network", async () => {
    const config = { dmScope: 'main', queue: queueWith('followup') } as const;
    const town = createIntakeFixture(open(), { config });
    const one = anAccount('alpha');
    const namesake = { ...one, channel: 'beta' };
    const laneKey = town.laneOf(await town.send(namesake, 'mine'));
    await town.send(one, '/stop');
    const { inbox } = await readLane(open(), laneKey);
    expect(inbox.filter(({ state }) => state === 'waiting')).toHaveLength(1);
    await town.worker.answer(await town.worker.claimRun(laneKey), 'done');
  });
});

/*
 * Four people on two networks with two bots each, one of them an owner and two of them linked, speak at random; a
 * worker takes, steers and answers at random. Whatever the scope and the mode, the text of a run has one route and
 * one authority, and every message is answered once, where it was sent.
 */
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('say' as const), who: fc.nat({ max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('claim' as const), nth: fc.nat({ max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('steer' as const), nth: fc.nat({ max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('answer' as const), nth: fc.nat({ max: 5 }) }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

describeEachDatabase('a lane shared by several accounts', (open, beside) => {
  beforeEach(() => beside.sql('delete from "linkGuesses"'));

  it.each<DmScope>(['per-account-channel-peer', 'per-channel-peer', 'per-peer', 'main'])(
    'mixes neither routes nor authorities under %s, and separates people as configured',
    async (dmScope) => {
      await holds(
        fc.asyncProperty(
          fc.constantFrom(...queueModes),
          fc.constantFrom(0, 5),
          fc.array(step, { maxLength: 30 }),
          async (mode, debounceMs, steps) => {
            await beside.sql('delete from "linkGuesses"');
            const play = await openPlay(open(), { dmScope, queue: queueWith(mode, debounceMs) });
            for (const one of steps) await play.take(one);
            await play.settle();
          },
        ),
        isLong ? { numRuns: 2_000 } : { numRuns: 10_000, interruptAfterTimeLimit: 1_000 },
      );
    },
    600_000,
  );
});

type Played = { readonly dmScope: DmScope; readonly queue: ReturnType<typeof queueWith> };

async function openPlay(store: Store, { dmScope, queue }: Played) {
  const same = anAccount('alpha');
  const people: readonly Account[] = [
    same,
    { ...same, bot: 'bot-2' },
    // Another person, who happens to have the same id on the other network.
    { ...same, channel: 'beta' },
    anAccount('alpha'),
    anAccount('beta'),
    anAccount('beta'),
  ];
  const [owner, , , one, other] = people;
  if (!owner || !one || !other) throw new Error('unreachable');
  const town = createIntakeFixture(store, { config: { dmScope, queue, owners: [refOf(owner)] } });
  await town.link(one, other);
  // Empty at the start of each play, although under `main` all plays of this test share one lane.
  const lanes = new Set<string>();
  const runs = new Map<string, Awaited<ReturnType<IntakeFixture['worker']['claimRun']>>>();
  const lanesOf = new Map<number, string>();
  const laneAt = (nth: number) => [...lanes][nth % Math.max(1, lanes.size)] ?? '';

  const check = async (run: {
    readonly runId: string;
    readonly target: RunTarget;
    readonly authority: string;
  }) => {
    const rows = await store.read(rowsOfRun, { runId: run.runId });
    const route = withoutQuote(routeFor(run));
    for (const row of rows) expect(row).toEqual({ route, authority: run.authority });
  };
  const claim = async (laneKey: string) => {
    if (laneKey === '' || runs.has(laneKey)) return undefined;
    const claimed = await town.worker.claim(laneKey);
    if (claimed.kind !== 'run') return claimed.kind;
    runs.set(laneKey, claimed.run);
    await check(claimed.run);
    return 'run';
  };
  const answer = async (laneKey: string) => {
    const run = runs.get(laneKey);
    if (!run) return;
    const { steers, next, cancelReason } = await town.worker.answer(run, 'ok', {
      delivery: 'all',
      mayKeepLane: false,
    });
    if (cancelReason !== undefined) {
      await endWithout(store, run, cancelReason, { outcome: 'cancelled' });
    }
    await check(run);
    if (next !== undefined || cancelReason !== undefined) runs.delete(laneKey);
    else expect(steers.length).toBeGreaterThan(0);
  };

  return {
    take: async (one: Step) => {
      switch (one.kind) {
        case 'say': {
          const who = people[one.who];
          if (!who) return;
          const laneKey = town.laneOf(await town.send(who, `words of ${one.who}`));
          lanes.add(laneKey);
          lanesOf.set(one.who, laneKey);
          return;
        }
        case 'claim':
          await claim(laneAt(one.nth));
          return;
        case 'steer': {
          const run = runs.get(laneAt(one.nth));
          if (!run) return;
          await store.write(takeSteers, { ...run, framing, delivery: 'all' });
          return check(run);
        }
        case 'answer':
          return answer(laneAt(one.nth));
        default:
          return one satisfies never;
      }
    },
    settle: async () => {
      const shares = (a: number, b: number) =>
        lanesOf.has(a) && lanesOf.has(b) ? lanesOf.get(a) === lanesOf.get(b) : undefined;
      const isMain = dmScope === 'main';
      // One person at two bots; namesakes on two networks; two strangers; one person's linked accounts.
      expect([undefined, isMain || dmScope !== 'per-account-channel-peer']).toContain(shares(0, 1));
      expect([undefined, isMain || dmScope === 'per-peer']).toContain(shares(0, 2));
      expect([undefined, isMain]).toContain(shares(0, 5));
      expect([undefined, isMain]).toContain(shares(3, 5));
      expect([undefined, true]).toContain(shares(3, 4));
      for (const laneKey of lanes) {
        const deadline = Date.now() + patienceMs;
        while (runs.has(laneKey) || (await claim(laneKey)) !== 'idle') {
          if (Date.now() > deadline) throw new Error(`${laneKey} does not come to rest`);
          await answer(laneKey);
        }
        const { inbox, openRuns } = await readLane(store, laneKey);
        expect(openRuns).toBe(0);
        expect(inbox.filter(({ state, outcome }) => state !== 'ended' || outcome === null)).toEqual([]);
      }
    },
  };
}

const rowsOfRun: StoreQuery<{ readonly runId: string }, readonly object[]> = {
  query: 'rowsOfRun',
  run: async (tx, { runId }) => {
    const rows = await tx.db
      .selectFrom('inbox')
      .select(['route', 'authority'])
      .where('runId', '=', runId)
      .execute();
    return rows.map((row) => {
      const { replyTo: _, ...route } = json.route(row.route);
      return { route, authority: row.authority };
    });
  },
};
