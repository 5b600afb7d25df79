import { expect, it } from 'vitest';
import type { MessageId } from '../../../src/contracts/ids.ts';
import type { OutboundContent } from '../../../src/contracts/outbound.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import { conversationKeyOf } from '../../../src/store/base/keys.ts';
import { claimDelivery, type Delivery, recordDelivery } from '../../../src/store/delivery/claim-delivery.ts';
import { readUnnotified, storeWaitingNotices } from '../../../src/store/items/waiting-notices.ts';
import { parkForBudget } from '../../../src/store/lanes/park-run.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { aConversation } from '../a-conversation.ts';
import { aCommand, aMessage, framing, holder, routeFor } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const line: OutboundContent = { kind: 'text', text: { text: 'Got it.', spans: [] } };
const reaction: OutboundContent = { kind: 'reaction', messageId: 'm' as MessageId, emoji: '👀' };

/** Returns a lane with an active run, where whatever arrives meanwhile waits. */
async function aBusyLane(store: Store) {
  const { conversation, conversationKey, lane, worker, saying, claimRun } = aConversation(store, {
    settings: { mode: 'followup' },
  });
  const say = (text: string, item = {}) => worker.accept(saying(text, { item }));
  await say('first');
  const run = await claimRun();
  /** Reads every unnotified message, however short its wait. */
  const look = async () => {
    const untold = await store.read(readUnnotified, { afterMs: -1 });
    return untold.filter(({ laneKey }) => laneKey === lane.key);
  };
  const tell = async (content: OutboundContent | undefined = reaction) => {
    const notices = (await look()).map((item) => ({ ...item, content }));
    return (await store.write(storeWaitingNotices, { notices })).deliveries;
  };
  const policy = { holder, leaseMs: 60_000, repeatSafeMs: 0, resendUnknown: false, conversationKey };
  const claim = () => store.write(claimDelivery, policy);
  const settle = ({ epoch, part }: Extract<Delivery, { kind: 'part' }>, result: object) =>
    store.write(recordDelivery, {
      ...policy,
      epoch,
      partKey: part.key,
      result: result as never,
      claimsNext: true,
    });
  const parts = () => store.read(readParts, { conversationKey });
  /** Delivers what there is to deliver, and returns what the platform was called for. */
  const deliverAll = async () => {
    const calls: string[] = [];
    for (let next = await claim(); next.kind === 'part'; ) {
      const { content } = next.part;
      calls.push(content.kind === 'text' ? content.text.text : content.kind);
      next = await settle(next, { kind: 'sent', receipts: [] });
    }
    return calls;
  };
  return { conversation, lane, worker, run, say, look, tell, claim, settle, parts, deliverAll };
}

const readParts: StoreQuery<{ readonly conversationKey: string }, readonly string[]> = {
  query: 'readPartsOfConversation',
  run: async (tx, { conversationKey }) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select(['content', 'state'])
      .where('conversationKey', '=', conversationKey)
      .orderBy('place')
      .execute();
    return rows.map(({ content, state }) => `${JSON.parse(content).kind} ${state}`);
  },
};

function partOf(delivery: Delivery) {
  if (delivery.kind !== 'part') throw new Error(`expected a part, got ${delivery.kind}`);
  return delivery;
}

describeEachDatabase('a waiting notice', (open) => {
  it('stores a waiting notice once, however often the message is looked for', async () => {
    const { say, look, tell, parts } = await aBusyLane(open());
    await say('second');
    const seen = await look();
    expect(seen).toHaveLength(1);
    const notices = seen.map((item) => ({ ...item, content: reaction }));
    await Promise.all([1, 2, 3].map(() => open().write(storeWaitingNotices, { notices })));
    expect(await tell()).toEqual([]);
    expect(await parts()).toEqual(['reaction pending']);
  });

  it('stores a waiting notice only once the message has waited long enough', async () => {
    const { say, lane } = await aBusyLane(open());
    await say('second');
    const late = await open().read(readUnnotified, { afterMs: 60_000 });
    expect(late.filter(({ laneKey }) => laneKey === lane.key)).toEqual([]);
  });

  it('stores no waiting notice for a message that was taken, cancelled or is held', async () => {
    const { conversation, lane, worker, run, say, look, tell, parts } = await aBusyLane(open());
    await say('steered');
    const seen = (await look()).map((item) => ({ ...item, content: reaction }));
    await worker.accept(aCommand(conversation, { kind: 'queue', change: { mode: 'steer' } }));
    await open().write(takeSteers, { ...run, framing, delivery: 'one-at-a-time' });
    await open().write(storeWaitingNotices, { notices: seen });
    await say('cancelled');
    await worker.accept(aCommand(conversation, { kind: 'stop', isPrivileged: false, isAll: false }));
    const bundle = { name: 'album', windowMs: 60_000 };
    await worker.accept(aMessage({ conversation, text: 'held', lane, item: { bundle, passesGate: false } }));
    expect(await tell()).toEqual([]);
    expect((await parts()).filter((part) => part.startsWith('reaction'))).toEqual([]);
  });

  it('stores one reaction for a waiting album, and one line for all messages of one person', async () => {
    const album = await aBusyLane(open());
    const bundle = { name: 'album', windowMs: 0 };
    for (const text of ['a', 'b', 'c']) await album.say(text, { bundle });
    await album.tell();
    expect(await album.parts()).toEqual(['reaction pending']);
    const chat = await aBusyLane(open());
    for (const text of ['a', 'b', 'c']) await chat.say(text);
    await chat.tell(line);
    expect(await chat.parts()).toEqual(['text pending']);
    expect(await chat.look()).toEqual([]);
  });

  it('stores a waiting notice once if the run waits for room reserved by another call', async () => {
    const pauseFor = async (isHeld: boolean) => {
      const lane = await aBusyLane(open());
      const { laneKey, epoch, runId } = lane.run;
      const refusal = { scope: 'gateway', key: 'gateway:2001-05-07', limit: 9, needs: 5, isHeld } as const;
      const pause = { reason: 'room', workedMs: 0, waitMs: 600_000, modelCalls: [], notice: undefined };
      await open().write(parkForBudget, { laneKey, epoch, runId, refusal, ...pause });
      return lane;
    };
    const held = await pauseFor(true);
    expect([(await held.tell()).length, (await held.tell()).length]).toEqual([1, 0]);
    expect(partOf(await held.claim()).part.content).toMatchObject({ kind: 'reaction', emoji: '👀' });
    const spent = await pauseFor(false);
    expect(await spent.tell(), 'a spent budget has its own notice').toEqual([]);
  });

  it('drops a waiting notice if its message was answered before the notice could be sent', async () => {
    const { lane, worker, run, say, tell, deliverAll, parts } = await aBusyLane(open());
    await say('second');
    await tell();
    await worker.answer(run, 'to the first', { delivery: 'none' });
    const next = await worker.claimRun(lane.key);
    await worker.answer(next, 'to the second');
    expect(await deliverAll()).toEqual(['to the first', 'to the second']);
    expect(await parts()).toEqual(['text sent', 'text sent']);
  });

  it('gives a waiting notice one attempt, so that it never delays an answer', async () => {
    for (const result of [
      { kind: 'retry', afterMs: 60_000, reason: 'busy' },
      { kind: 'unknown', reason: 'cut off' },
      { kind: 'failed', failure: { kind: 'rejected' }, reason: 'no reactions here' },
    ]) {
      const { worker, run, say, tell, claim, settle } = await aBusyLane(open());
      await say('second');
      await tell();
      const notice = partOf(await claim());
      expect(notice.part.content.kind).toBe('reaction');
      await worker.answer(run, 'to the first', { delivery: 'none' });
      const behind = partOf(await settle(notice, result));
      expect(behind.part.content).toMatchObject({ kind: 'text', text: { text: 'to the first' } });
    }
  });

  it("doesn't repeat a waiting notice after its sender died if the message no longer waits", async () => {
    const { worker, run, lane, say, tell, deliverAll } = await aBusyLane(open());
    await say('second');
    await tell();
    await open().write(claimDelivery, {
      holder: 'dead',
      leaseMs: -1,
      repeatSafeMs: 0,
      resendUnknown: false,
      conversationKey: conversationKeyOf(routeFor(run)),
    });
    await worker.answer(run, 'to the first', { delivery: 'none' });
    await worker.claimRun(lane.key);
    expect(await deliverAll()).toEqual(['to the first']);
  });
});
