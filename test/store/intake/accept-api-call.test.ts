import { expect, it } from 'vitest';
import { type ApiCallInput, acceptApiCall } from '../../../src/store/intake/accept-api-call.ts';
import { aLane, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('calls of programs', (store) => {
  const aCall = (over: Partial<ApiCallInput> = {}): ApiCallInput => ({
    ...{ caller: 'token', key: unique('key'), digest: unique('digest'), retry: 0 },
    lane: aLane(unique('api')),
    item: {
      ...{ id: crypto.randomUUID(), source: 'api', reach: 'mode', target: 'record', authority: 'member' },
      reservedRunId: crypto.randomUUID(),
      content: { text: 'hi', prompt: 'hi', sender: { id: 'x', name: 'X' }, sentAt: 1, attachments: [] },
    },
    ...over,
  });
  const accept = async (call: ApiCallInput) => {
    const result = await store().write(acceptApiCall, call);
    return result.kind === 'accepted' ? result.item.reservedRunId : result.kind;
  };
  const again = (call: ApiCallInput, over: Partial<ApiCallInput> = {}) =>
    aCall({ key: call.key, digest: call.digest, lane: call.lane, ...over });
  const countItems = () =>
    store().read(
      {
        query: 'count items',
        run: async ({ db }) => (await db.selectFrom('inbox').select('id').execute()).length,
      },
      {},
    );

  it('stores one item for calls with the same key, however many arrive at once', async () => {
    const call = aCall();
    const before = await countItems();
    const runs = await Promise.all(Array.from({ length: 8 }, () => accept(again(call))));
    expect(new Set(runs).size).toBe(1);
    expect(await countItems()).toBe(before + 1);
    expect(await accept(again(call, { lane: aLane(unique('other')) }))).toBe(runs[0]);
  });

  it('refuses a key for another question, but not to another caller', async () => {
    const call = aCall();
    const run = await accept(call);
    expect(await accept(again(call, { digest: 'other' }))).toBe('reused');
    const ofAnother = await accept(again(call, { caller: 'another' }));
    expect([run, 'reused']).not.toContain(ofAnother);
  });

  it('finds the call that is attempted again, and none with as many attempts', async () => {
    const call = aCall();
    const anew = (retry: number, over: Partial<ApiCallInput> = {}) =>
      accept(again(call, { key: unique('key'), retry, ...over }));
    const [first, second] = [await accept(call), await anew(0)];
    expect(second).not.toBe(first);
    // Another body or another caller is another call, and an attempt whose forerunners never arrived is the first.
    const others = [await anew(1, { digest: unique('digest') }), await anew(1, { caller: 'another' })];
    const retried = await Promise.all([anew(1), anew(1)]);
    expect(retried.toSorted()).toEqual([first, second].toSorted());
    expect([first, second]).toContain(await anew(2));
    for (const other of others) expect([first, second]).not.toContain(other);
  });
});
