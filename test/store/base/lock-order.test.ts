import { expect, it, onTestFinished } from 'vitest';
import type { LaneSpec } from '../../../src/store/base/keys.ts';
import { dropPart, readUndelivered } from '../../../src/store/delivery/operator-actions.ts';
import { acceptBatch } from '../../../src/store/intake/accept-batch.ts';
import { enqueueItems } from '../../../src/store/intake/enqueue-items.ts';
import type { Proposal } from '../../../src/store/intake/proposal.ts';
import { storeWaitingNotices } from '../../../src/store/items/waiting-notices.ts';
import { claimAccount } from '../../../src/store/processes/accounts.ts';
import { voidProcesses } from '../../../src/store/processes/process-records.ts';
import { aConversation, aCourier, policy } from '../a-conversation.ts';
import {
  aCommand,
  account,
  aLane,
  aMessage,
  anItem,
  aRoute,
  aWorker,
  demoOnly,
  endWithout,
  holder,
  unique,
} from '../builders.ts';
import { type Beside, describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker } from '../family.ts';
import { holdNewLane, holdRow, isAnyoneWaiting, isLaneMade, isRowHeld } from '../hold-row.ts';
import { readLane } from '../lane-at-rest.ts';

type Pair = readonly [low: string, high: string];

describeEachDatabase('a batch for several lanes', (open, beside) => {
  // With one writer thread, SQLite has no order to keep.
  const onPostgres = beside.dialect === 'postgres';

  const said = (text: string, [low, high]: Pair) =>
    [high, low].map((conversation) => aMessage({ conversation, text, messageId: `${conversation}${text}` }));
  /** From a sender with linked accounts; the other lane is the one they wrote in before. */
  const stops = ([low, high]: Pair) => [
    aCommand(high, {
      ...{ kind: 'stop', isPrivileged: true, isAll: false },
      linked: { people: [], formerLane: aLane(low).key },
    }),
  ];
  const changing = ([low, high]: Pair) => {
    const edited = aMessage({ conversation: low, text: 'first', messageId: `${low}first` });
    const decision = {
      kind: 'edit',
      text: 'better',
      prompt: 'better',
      note: '',
      newId: unique('edit'),
    } as const;
    const edit = { ...edited, eventKey: unique('edit'), kind: 'edit', decision } as const;
    return [aMessage({ conversation: high, text: 'second' }), edit];
  };
  it.runIf(onPostgres).each([
    ['two messages', (pair: Pair) => said('second', pair)],
    ['a message and an edit', changing],
    ['a /stop that concerns both', stops],
  ])('locks lanes in key order, so that two batches never deadlock: %s', async (_, second) => {
    const pair = [unique('a'), unique('b')] as const;
    const [low, high] = pair;
    const worker = aWorker(open());
    await worker.accept(...said('first', pair));
    const lock = (conversation: string) =>
      `select 1 from lanes where key = '${aLane(conversation).key}' for update`;
    const held = `select pg_sleep(300) /* ${high} */`;
    const holding = beside.sql(`${lock(high)}; ${held}`).catch(() => undefined);
    const release = async () => {
      await beside.sql(`select pg_terminate_backend(pid) from pg_stat_activity
        where query like '%/* ${high} */' and pid <> pg_backend_pid()`);
      await holding;
    };
    // Released even if something below fails, because the lock would block the clean-up of the file too.
    onTestFinished(release);
    const isHeld = (conversation: string) =>
      beside.sql(`${lock(conversation)} nowait`).then(
        () => false,
        () => true,
      );
    await expect.poll(() => isHeld(high)).toBe(true);
    const accepting = worker.accept(...second(pair));
    // It waits for the higher lane while it already holds the lower one, although that came second.
    await expect.poll(() => isHeld(low)).toBe(true);
    await release();
    await accepting;
  });
});

function holdLane(beside: Beside, { key }: LaneSpec) {
  return holdRow(beside, 'lanes', key);
}

describeEachDatabase('several lanes of which some are new', (open, beside) => {
  const said = (lanes: readonly LaneSpec[]) =>
    lanes.map((lane) => aMessage({ conversation: lane.key, text: 'hello', lane }));
  const accept = (lanes: readonly LaneSpec[]) => aWorker(open()).accept(...said(lanes));
  const enqueue = (lanes: readonly LaneSpec[]) =>
    open().write(enqueueItems, { items: lanes.map((lane) => ({ lane, item: anItem('hello') })) });

  it.runIf(beside.dialect === 'postgres').each([
    ['a batch that makes both', accept, holdNewLane],
    ['a batch that makes the lower one', accept, holdLane],
    ['items from inside that make both', enqueue, holdNewLane],
    ['items from inside that make the lower one', enqueue, holdLane],
  ] as const)('locks and creates lanes in key order: %s', async (_, enter, hold) => {
    const [low, high] = [aLane(unique('a')), aLane(unique('b'))];
    if (hold === holdLane) await accept([high]);
    const release = await hold(beside, high);
    const entering = enter([high, low]);
    // It waits for the higher lane and has already created the lower one, although that came second.
    await expect.poll(() => isLaneMade(beside, low)).toBe(true);
    await release();
    await entering;
    for (const { key } of [low, high]) expect((await readLane(open(), key)).inbox.length).toBeGreaterThan(0);
  });

  it.runIf(beside.dialect === 'postgres').each([
    ['a batch', accept],
    ['items from inside', enqueue],
  ] as const)("doesn't create a higher lane while it waits for a lower one: %s", async (_, enter) => {
    const [low, high] = [aLane(unique('a')), aLane(unique('b'))];
    await accept([low]);
    const release = await holdLane(beside, low);
    const entering = enter([high, low]);
    await expect.poll(() => isAnyoneWaiting(beside)).toBe(true);
    expect(await isLaneMade(beside, high)).toBe(false);
    await release();
    await entering;
  });
});

describeEachDatabase('a failed delivery', (open, beside) => {
  const onPostgres = beside.dialect === 'postgres';
  it.runIf(onPostgres).each(['unreachable', 'rejected'] as const)(
    'locks the lane before the conversation when the failure is: %s',
    async (kind) => {
      const store = open();
      const { conversationKey, lane, say, begin, answer, claimPart, record } = aConversation(store);
      await answer(await begin(), 'hello');
      await say('and more');
      const delivery = await claimPart();
      const held = unique('held');
      // A step of the lane, which holds the lane and wants the conversation once another step waits for the lane.
      const step = beside.sql(`do $$ begin
        perform 1 from lanes where key = '${lane.key}' for update; /* ${held} */
        while not exists (select 1 from pg_locks where not granted and database =
            (select oid from pg_database where datname = current_database()))
          and not exists (select 1 from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock')
        loop perform pg_sleep(0.01); perform pg_stat_clear_snapshot(); end loop;
        perform 1 from conversations where key = '${conversationKey}' for update nowait;
      end $$`);
      await expect.poll(() => isRowHeld(beside, 'lanes', lane.key)).toBe(true);
      const failure = kind === 'unreachable' ? { kind } : { kind: 'rejected' as const };
      const result = { kind: 'failed', failure, reason: 'blocked' } as const;
      const settled = record(delivery, result, true);
      await step;
      expect((await settled).kind).toBe('empty');
    },
  );

  it.runIf(onPostgres)("doesn't wait for a lane to give up a part that was cut off", async () => {
    const store = open();
    const { conversationKey, lane, begin, answer } = aConversation(store);
    await answer(await begin(), 'hello');
    const { claimNext } = aCourier(store, conversationKey, { leaseMs: 0 });
    expect((await claimNext()).kind).toBe('part');
    const release = await holdRow(beside, 'lanes', lane.key);
    expect((await claimNext()).kind).toBe('later');
    await release();
    expect((await claimNext()).kind).toBe('empty');
    const undelivered = await store.read(readUndelivered, { limit: 1 });
    expect(undelivered).toMatchObject([{ conversation: conversationKey, state: 'unknown' }]);
  });

  it.runIf(onPostgres)('locks the lane before the conversation when the operator drops a part', async () => {
    const store = open();
    const { conversationKey, lane, begin, answer } = aConversation(store);
    const run = await begin();
    await answer(run, 'hello');
    // Like a claim that has read the part but not marked it yet.
    const release = await holdRow(beside, 'conversations', conversationKey);
    const dropped = store.write(dropPart, { key: `${run.runId}:1` });
    await expect.poll(() => isRowHeld(beside, 'lanes', lane.key)).toBe(true);
    await release();
    expect(await dropped).toBe('done');
  });

  it.runIf(onPostgres)('ignores a lane that appeared while it waited for the conversation', async () => {
    const store = open();
    const { conversationKey, lane, worker, say, begin, answer, claimPart, record } = aConversation(store);
    const late = aLane(unique('late'));
    await answer(await begin(), 'hello');
    const delivery = await claimPart();
    const releaseConversation = await holdRow(beside, 'conversations', conversationKey);
    const result = { kind: 'failed', failure: { kind: 'unreachable' }, reason: 'blocked' } as const;
    const recorded = record(delivery, result, true);
    await expect.poll(() => isRowHeld(beside, 'lanes', lane.key)).toBe(true);
    await say('and more', { lane: late });
    const releaseLane = await holdRow(beside, 'lanes', late.key);
    await releaseConversation();
    expect((await recorded).kind).toBe('empty');
    await releaseLane();
    const run = await worker.claimRun(late.key);
    await answer(run, 'hello again');
    expect((await readLane(store, late.key)).inbox).toMatchObject([{ outcome: 'failed' }]);
  });
});

describeEachDatabase('the end of a run with a /new waiting', (open, beside) => {
  it.runIf(beside.dialect === 'postgres')(
    "doesn't lock a sub-agent's lane after the conversation",
    async () => {
      const worker = aFamilyWorker(open());
      const { conversation, lane, run: first } = await worker.begin('followup');
      await worker.accept(aMessage({ conversation, lane, text: 'second' }));
      await worker.accept(aMessage({ conversation, lane, text: '/new', item: { kind: 'command' } }));
      await endWithout(open(), first, 'reset');
      const run = await worker.claimRun(lane.key);
      const { laneKey } = await worker.spawnOne(run);
      // Like a step of the sub-agent, which may speak in this conversation.
      const release = await holdRow(beside, 'lanes', laneKey);
      const claims = { holder, leaseMs: 10_000, newRunId: unique('run'), maxAttempts: 3, models: demoOnly };
      const { next } = await aWorker(open()).answer(run, 'done', { claims });
      expect(next).toEqual({ kind: 'continuing' });
      await release();
      expect((await worker.claim(lane.key)).kind).toBe('again');
    },
  );
});

describeEachDatabase('a message of somebody whose accounts are being linked', (open, beside) => {
  it.runIf(beside.dialect === 'postgres')(
    "decides a message again if its sender's accounts were linked while it waited for the lane",
    async () => {
      const { lane, say, saying, worker } = aConversation(open());
      await say('before the link');
      const peer = unique('test:ann');
      // Like a link that hasn't committed yet.
      const release = await holdRow(beside, 'lanes', lane.key);
      const links = { peers: [peer], identities: [], accounts: [] };
      const accepting = open().write(acceptBatch, {
        ...{ account, holder, epoch: await worker.hold(), links },
        proposals: [saying('with the rights of one alone')],
      });
      const refused = expect(accepting).rejects.toMatchObject({ code: 'access_changed' });
      await expect.poll(() => isRowHeld(beside, 'accounts', account)).toBe(true);
      await beside.sql(
        `insert into links (peer, identity, route, "linkedAt") values ('${peer}', 'both', '{}', 1)`,
      );
      await release();
      await refused;
      expect((await readLane(open(), lane.key)).inbox).toHaveLength(1);
    },
  );
});

describeEachDatabase('a step for several rows', (open, beside) => {
  const itOnPostgres = it.runIf(beside.dialect === 'postgres');
  /** Holds the lower of two rows during the action, and expects the higher one to be free while the action waits. */
  const expectHigherFree = async (table: string, [low, high]: Pair, act: () => Promise<unknown>) => {
    const release = await holdRow(beside, table, low);
    const acting = act();
    await expect.poll(() => isAnyoneWaiting(beside)).toBe(true);
    expect(await isRowHeld(beside, table, high)).toBe(false);
    await release();
    await acting;
  };
  /** Makes a conversation in which the holder is sending an answer and working on the next message. */
  const workIn = async (conversation: string, name: string) => {
    const [people, dead] = [aWorker(open()), aWorker(open(), name)];
    await people.accept(aMessage({ conversation, text: 'hello' }));
    const run = await dead.claimRun(aLane(conversation).key);
    await dead.answer(run, 'hello', { sender: { ...policy, holder: name } });
    await people.accept(aMessage({ conversation, text: 'and more' }));
    await dead.claimRun(aLane(conversation).key);
  };
  const conversationsOf = ([low, high]: Pair): Pair => [`${account}/${low}`, `${account}/${high}`];

  itOnPostgres('locks accounts in key order when it reaps a dead process', async () => {
    const dead = unique('dead');
    const accounts = [`test/${unique('a')}`, `test/${unique('b')}`] as const;
    // An update without an order takes them in the order in which they were stored.
    for (const key of accounts.toReversed())
      await open().write(claimAccount, { account: key, holder: dead, leaseMs: 60_000 });
    const end = () => open().write(voidProcesses, { ids: [dead], sends: [] });
    await expectHigherFree('accounts', accounts, end);
  });

  itOnPostgres.each([0, 1])('locks lanes in key order when it reaps a dead process (%s)', async (first) => {
    const [dead, low, high] = [unique('dead'), unique('a'), unique('b')];
    // One of the two orders is the one that an unordered update would take.
    for (const conversation of first === 0 ? [high, low] : [low, high]) await workIn(conversation, dead);
    const end = () => open().write(voidProcesses, { ids: [dead], sends: [] });
    await expectHigherFree('lanes', [aLane(low).key, aLane(high).key], end);
  });

  itOnPostgres('locks conversations in key order when it reaps two dead processes', async () => {
    const [low, high] = [unique('a'), unique('b')];
    const ids = [unique('dead'), unique('dead')] as const;
    await workIn(high, ids[0]);
    await workIn(low, ids[1]);
    const sends = ids.map((holder) => ({ holder, begun: [] }));
    const end = () => open().write(voidProcesses, { ids, sends });
    await expectHigherFree('conversations', conversationsOf([low, high]), end);
  });

  itOnPostgres('locks conversations in key order when it stores waiting notices', async () => {
    const [low, high] = [unique('a'), unique('b')];
    const worker = aWorker(open());
    const ids: string[] = [];
    for (const conversation of [high, low]) {
      await worker.accept(aMessage({ conversation, text: 'one' }));
      const run = await worker.claimRun(aLane(conversation).key);
      await worker.answer(run, 'hello');
      const message = aMessage({ conversation, text: 'two' });
      await worker.accept(message);
      if (message.decision.kind === 'accept') ids.push(message.decision.item.id);
    }
    const content = { kind: 'text', text: { text: 'wait', spans: [] } } as const;
    const notices = ids.map((inboxId, index) => ({
      ...{ inboxId, content },
      laneKey: aLane([high, low][index] ?? '').key,
    }));
    await expectHigherFree('conversations', conversationsOf([low, high]), () =>
      open().write(storeWaitingNotices, { notices }),
    );
  });

  itOnPostgres('locks conversations in key order when it refuses messages with a notice', async () => {
    const pair: Pair = [unique('a'), unique('b')];
    const worker = aWorker(open());
    const refusals = (round: string) =>
      pair.toReversed().map(
        (conversation): Proposal => ({
          ...aMessage({ conversation, text: 'too much' }),
          decision: {
            ...{ kind: 'refuse', reason: 'rate-limited' },
            notice: { route: aRoute(conversation), text: round },
          },
        }),
      );
    await worker.accept(...refusals('first'));
    await expectHigherFree('conversations', conversationsOf(pair), () =>
      worker.accept(...refusals('second')),
    );
  });
});
