import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/base/command.ts';
import { recordDelivery } from '../../../src/store/delivery/claim-delivery.ts';
import { acceptBatch } from '../../../src/store/intake/accept-batch.ts';
import { needsBoundary } from '../../../src/store/lanes/steer.ts';
import { readArrivalFacts } from '../../../src/store/reads/arrival-facts.ts';
import { readContext } from '../../../src/store/reads/read-transcript.ts';
import { databaseServer, makeDatabase } from '../../e2e/own-database.ts';
import { openStore } from '../../support/open-store.ts';
import { countRoundTrips } from '../../support/round-trips.ts';
import {
  aCommand,
  account,
  aLane,
  aMessage,
  aRoute,
  aWorker,
  defaults,
  framing,
  holder,
  unique,
} from '../builders.ts';
import { counted, rate } from '../call-builders.ts';
import { oneDatabase } from './one-database.ts';

describe.skipIf(databaseServer === undefined)('a message and its answer', () => {
  const opened = oneDatabase();

  it('takes ten round trips for a message and its answer, however many arrive at once', async () => {
    const { store } = opened;
    if (!store) throw new Error('no store');
    await roundTripsOf(store, ['c1', 'c2', 'c3']);
    expect(await roundTripsOf(store, ['c1'])).toEqual({ arrival: 4, reads: 2, answer: 2, delivery: 2 });
    const { arrival } = await roundTripsOf(store, ['c1', 'c2', 'c3']);
    expect(arrival).toBe(4);
  });

  it('takes no more round trips after commands and presses', async () => {
    const { store } = opened;
    if (!store) throw new Error('no store');
    const { accept } = aWorker(store);
    const by = { ref: 'test:ann', label: 'test:ann', isOwner: true, role: 'user' } as const;
    const inputs = {
      link: { kind: 'join', code: 'x', name: 'Ann', redeeming: { peer: 'test:ann', codeHash: 'x' } },
      pair: { kind: 'approve', which: 'x', of: { codeHash: 'x' }, by },
      approve: { id: 'x', by },
      stop: { isPrivileged: true, isAll: false },
    };
    const event = aCommand('commands', { kind: 'status' });
    for (const [command, input] of Object.entries(inputs))
      await accept({
        ...{ ...event, eventKey: unique('command') },
        decision: {
          kind: 'command',
          command,
          input: { input },
          lane: aLane('commands'),
          route: aRoute('commands'),
        },
      });
    await accept({ ...event, eventKey: unique('press'), decision: { kind: 'press', data: 'a:x:y', by } });
    expect((await roundTripsOf(store, ['c1'])).arrival).toBe(4);
  });
});

describe.skipIf(databaseServer === undefined)('a message among many conversations', () => {
  it("finds a message's lane and conversation by their keys among many", async ({ onTestFinished }) => {
    const { url, read } = await makeDatabase(onTestFinished);
    const play = async () => {
      const store = await openStore({ kind: 'postgres', url });
      await roundTripsOf(store, ['c1', 'c2', 'c3']).finally(() => store.close());
    };
    await play();
    for (const table of ['lanes', 'conversations']) {
      const copy = `jsonb_populate_record(null::${table}, to_jsonb(one) || jsonb_build_object('key', 'x' || n))`;
      await read(`insert into ${table} select copy.* from (select * from ${table} limit 1) as one,
        generate_series(1, 10000) as n, ${copy} as copy; analyze ${table}; select pg_stat_force_next_flush()`);
    }
    const scans = async () => {
      const [row] = await read(`select sum(seq_scan)::int as whole, sum(idx_scan)::int as "byKey"
        from pg_stat_user_tables where relname in ('lanes', 'conversations')`);
      return row as { whole: number; byKey: number };
    };
    const before = await scans();
    await play();
    // PostgreSQL counts them when the connection has ended.
    await expect.poll(async () => (await scans()).byKey).toBeGreaterThan(before.byKey + 20);
    expect((await scans()).whole).toBe(before.whole);
  });
});

/** Counts the round trips of each stage: of the arrival for all conversations together, of the others for the first. */
async function roundTripsOf(store: Store, conversations: readonly string[]) {
  const worker = aWorker(store);
  const epoch = await worker.hold();
  const policy = { holder, leaseMs: 60_000, repeatSafeMs: 0, resendUnknown: false };
  const proposals = conversations.map((conversation) =>
    aMessage({
      conversation,
      text: 'hello',
      lane: aLane(conversation, { settings: { ...defaults, mode: 'followup' } }),
    }),
  );
  const claims = {
    ...{ holder, leaseMs: 60_000, framing, maxAttempts: 3, class: 'main' },
    models: { byAgent: {}, byDefault: 'demo' },
    rates: { demo: rate },
    newRunIds: conversations.map(() => unique('run')),
  };
  const links = { peers: ['test:ann'], identities: [], accounts: [] };
  const runs: Awaited<ReturnType<typeof acceptBatch.run>>['runs'][number][] = [];
  const arrival = await countRoundTrips(async () => {
    const people = { senders: ['ann'], peers: ['test:ann'], identities: [] };
    await store.read(readArrivalFacts, { account, conversations, ...people });
    const input = { account, epoch, holder, proposals, links, claims, cursor: '1' };
    runs.push(...(await store.write(acceptBatch, input)).runs);
  });
  const trips: number[] = [];
  for (const run of runs) {
    const reads = await countRoundTrips(async () => {
      await store.read(readContext, run);
      await store.read(needsBoundary, run);
    });
    const sent: Awaited<ReturnType<typeof worker.answer>>[] = [];
    const answer = await countRoundTrips(async () => {
      sent.push(await worker.answer(run, 'hello', { sender: policy, modelCalls: [counted(run)] }));
    });
    const claimed = sent[0]?.claimed;
    if (claimed?.delivery.kind !== 'part') throw new Error('nothing was claimed');
    const { conversationKey, delivery } = claimed;
    const settling = { ...policy, conversationKey, epoch: delivery.epoch, partKey: delivery.part.key };
    const result = { kind: 'sent', receipts: [] } as const;
    const settled = await countRoundTrips(() =>
      store.write(recordDelivery, { ...settling, result, claimsNext: true }),
    );
    trips.push(reads, answer, settled);
  }
  const [reads, answer, delivery] = trips;
  return { arrival, reads, answer, delivery };
}
