import { expect, it } from 'vitest';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { readLinks } from '../../src/store/links/read-links.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { cutPower, everyCut } from '../support/power-cut.ts';
import { anAccount, createIntakeFixture, refOf } from './support/intake-fixture.ts';

describeEachDatabase('a link', (open, beside) => {
  it('stores a link completely or not at all across a power cut', async () => {
    for (const cut of everyCut(2)) {
      await beside.sql('delete from "linkGuesses"');
      const town = createIntakeFixture(open());
      const [asker, joiner] = [anAccount('alpha'), anAccount('beta')];
      const before = town.laneOf(await town.send(asker, 'before'));
      const code = await town.ask(asker);
      await town.send(joiner, `/link ${code}`);
      // Write 1 takes the account's lease, write 2 stores the command.
      const dying = createIntakeFixture(cutPower(open(), cut));
      await dying.send(joiner, `/link confirm ${code}`).catch(() => undefined);

      const isLinked = cut.write === 2 && cut.isCommitted;
      const left = await stateOf(open(), refOf(asker), refOf(joiner));
      expect({ cut, ...left }).toEqual({
        cut,
        accounts: isLinked ? [refOf(asker), refOf(joiner)].sort() : [],
        lanes: isLinked ? [before] : [],
        codes: isLinked ? 0 : 1,
      });
      expect((await town.said(joiner)).length).toBe(isLinked ? 2 : 1);
      expect((await town.said(asker)).length).toBe(isLinked ? 2 : 1);
    }
  });

  it('applies a link that is made between the decision on a message and its storing', async () => {
    await beside.sql('delete from "linkGuesses"');
    const town = createIntakeFixture(open());
    const [owner, guest] = [anAccount('alpha'), anAccount('beta')];
    const config = { owners: [refOf(owner)] };
    const code = await town.ask(owner);
    await town.send(guest, `/link ${code}`);
    const shared = town.laneOf(await town.send(owner, 'before'));
    await town.worker.answer(await town.worker.claimRun(shared), 'ok');

    const late = createIntakeFixture(
      meanwhile(open(), () => town.send(guest, `/link confirm ${code}`)),
      { config },
    );
    const laneKey = town.laneOf(await late.send(owner, 'with the rights of an owner?'));
    const run = await town.worker.claimRun(laneKey);
    expect([laneKey, run.authority]).toEqual([shared, 'guest']);
    await town.worker.answer(run, 'no');

    const leaving = createIntakeFixture(
      meanwhile(open(), () => town.send(owner, `/link remove ${refOf(guest)}`)),
    );
    expect(town.laneOf(await leaving.send(guest, 'not for the other'))).not.toBe(shared);
  });
});

/** Returns the store, with something that happens right after intake's first look at it. */
function meanwhile(store: Store, happens: () => Promise<unknown>): Store {
  let isPast = false;
  return {
    ...store,
    read: async (query, input) => {
      const found = await store.read(query, input);
      if (query.query !== 'readArrivalFacts' || isPast) return found;
      isPast = true;
      await happens();
      return found;
    },
  };
}

async function stateOf(store: Store, asker: string, joiner: string) {
  const { accounts, lanes } = await store.read(readLinks, { peers: [asker, joiner], identities: [] });
  return {
    accounts: accounts.map(({ peer }) => peer).sort(),
    lanes: lanes.map(({ laneKey }) => laneKey),
    codes: (await store.read(codesOf, { peer: asker })).length,
  };
}

const codesOf: StoreQuery<{ readonly peer: string }, readonly object[]> = {
  query: 'codesOf',
  run: (tx, { peer }) => tx.db.selectFrom('linkCodes').select('peer').where('peer', '=', peer).execute(),
};
