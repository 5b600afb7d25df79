import { expect, it } from 'vitest';
import type { Tx } from '../../../src/store/base/command.ts';
import { prepared, type QueryParams } from '../../../src/store/base/prepared.ts';
import { aLane, aMessage, aWorker, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('a prepared query', (store) => {
  const ask = <Found>(run: (tx: Tx) => Promise<Found>) =>
    store().read({ query: 'ask', run: (tx: Tx) => run(tx) }, {});

  it('builds a prepared query once and binds new values each time', async () => {
    const [anna, bela] = [unique('anna'), unique('bela')];
    const worker = aWorker(store());
    await worker.accept(aMessage({ conversation: anna, text: 'one' }));
    await worker.accept(aMessage({ conversation: bela, text: 'two' }));
    let times = 0;
    const said = prepared((db, of: QueryParams<{ least: number; laneKey: string }>) => {
      times += 1;
      const rows = db.selectFrom('inbox').select(['laneKey', 'kind']).where('kind', '=', 'message');
      return rows.where('seq', '>=', of.least).where('laneKey', '=', of.laneKey);
    });
    for (const laneKey of [aLane(anna).key, aLane(bela).key]) {
      const found = await ask((tx) => said.all(tx, { laneKey, least: 1 }));
      expect(found).toEqual([{ laneKey, kind: 'message' }]);
      expect(await ask((tx) => said.first(tx, { laneKey, least: 2 }))).toBeUndefined();
    }
    expect(times).toBe(1);
  });

  it('names the query that found no row where one is required', async () => {
    const account = prepared((db, of: QueryParams<{ key: string }>) =>
      db.selectFrom('accounts').select('epoch').where('key', '=', of.key),
    );
    await expect(ask((tx) => account.one(tx, { key: unique('nobody') }))).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringContaining('"accounts"'),
    });
  });
});
