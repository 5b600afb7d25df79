import { afterAll, expect, it } from 'vitest';
import type { MessageId } from '../../../src/contracts/ids.ts';
import type { MarkSettings } from '../../../src/contracts/mark.ts';
import { failedReaction, type OutboundContent } from '../../../src/contracts/outbound.ts';
import type { Store } from '../../../src/store/base/command.ts';
import type { SendOutcome } from '../../../src/store/delivery/end-part.ts';
import { readUndelivered } from '../../../src/store/delivery/operator-actions.ts';
import { storeToolParts } from '../../../src/store/delivery/tool-send.ts';
import { acknowledge } from '../../../src/store/lanes/acknowledgement.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { parkForBudget } from '../../../src/store/lanes/park-run.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { openMemoryStore } from '../../support/memory-store.ts';
import { aConversation, aCourier } from '../a-conversation.ts';
import { endWithout, framing, routeFor, type Saying } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { markWaitingNow, showMarksNow } from '../show-marks-now.ts';

const marks: MarkSettings = { kind: 'reaction', channels: {}, merged: '🤝', read: '✍️' };
const sent: SendOutcome = { kind: 'sent', receipts: [] };
const limited: SendOutcome = { kind: 'retry', afterMs: 60_000, askedMs: 60_000, reason: 'too many' };
const refused: SendOutcome = {
  kind: 'failed',
  failure: { kind: 'rejected' },
  reason: 'Bad Request: REACTION_INVALID',
};

type Network = {
  readonly showsOneReaction?: boolean;
  readonly mode?: 'steer' | 'collect' | 'steer-backlog';
  readonly cap?: number;
  readonly drop?: 'old' | 'summarize';
};

/** Returns a conversation whose network says what it was called for. */
function aNetwork(store: Store, { showsOneReaction = true, mode = 'steer', ...settings }: Network = {}) {
  const chat = aConversation(store, { settings: { mode, quietMs: 0, ...settings } });
  const { laneKey, conversationKey, worker } = chat;
  const courier = aCourier(store, conversationKey, { showsOneReaction });
  const calls: string[] = [];
  /** Delivers what is due; `result`: what the network says to marks. */
  const deliver = async (result: SendOutcome = sent) => {
    for (let next = await courier.claimNext(); next.kind === 'part'; next = await courier.claimNext()) {
      calls.push(shown(next.part.content));
      await courier.record(next, next.part.key.endsWith(':mark') ? result : sent);
    }
    return calls.splice(0);
  };
  const say = (messageId: string, item: Saying['item'] = {}) =>
    chat.say(messageId, { messageId, eventKey: `${chat.conversation}/${messageId}`, item });
  const begin = async (messageId: string) => {
    await say(messageId);
    return claim();
  };
  const claim = async () => {
    const claimed = await worker.claim(laneKey, 10_000, { marks });
    if (claimed.kind !== 'run') throw new Error(`expected a run, got ${claimed.kind}`);
    return claimed.run;
  };
  const steer = (run: ClaimedRun) =>
    store.write(takeSteers, { ...run, framing, marks, delivery: 'one-at-a-time' });
  const tell = () => markWaitingNow(store, laneKey);
  const wait = async () => {
    await tell();
    return deliver();
  };
  /** Looks as the sweep does, then delivers. */
  const look = async (result?: SendOutcome) => {
    await showMarksNow(store, laneKey);
    return deliver(result);
  };
  return { ...chat, say, begin, claim, steer, tell, wait, look, deliver };
}

function shown(content: OutboundContent): string {
  if (content.kind === 'reaction')
    return `${content.isRemoved ? '-' : '+'}${content.emoji} ${content.messageId}`;
  return content.kind === 'text' ? content.text.text : content.kind;
}

describeEachDatabase('a mark', (open, beside) => {
  /** Lets the pause between two calls pass. */
  const pass = (conversationKey: string) =>
    beside.sql(`update outbox set "dueAt" = 0 where "conversationKey" = '${conversationKey}'`);

  it('shows that a message waits, was read by the working run, and nothing once it has its answer', async () => {
    const { begin, say, wait, steer, look, answer } = aNetwork(open());
    const run = await begin('a');
    await say('b');
    expect(await wait()).toEqual(['+👀 b']);
    await steer(run);
    expect(await look()).toEqual(['+✍️ b']);
    await answer(run, 'Done.');
    expect(await look()).toEqual(['Done.', '-✍️ b']);
    expect(await look()).toEqual([]);
  });

  it('shows which messages a run answers together with a later one, once for an album', async () => {
    const { begin, say, look, claim, answer } = aNetwork(open(), { mode: 'collect' });
    const first = await begin('a');
    const album = { bundle: { name: 'album', windowMs: 0 } };
    for (const photo of ['b1', 'b2']) await say(photo, album);
    await say('c');
    await say('d');
    await answer(first, 'One.');
    const second = await claim();
    expect((await look()).sort()).toEqual(['+🤝 b1', '+🤝 c', 'One.'].sort());
    await answer(second, 'Two.');
    expect((await look()).sort()).toEqual(['-🤝 b1', '-🤝 c', 'Two.'].sort());
  });

  it('marks no message that a run takes alone', async () => {
    const { begin, look, answer } = aNetwork(open(), { mode: 'collect' });
    const run = await begin('a');
    expect(await look()).toEqual([]);
    await answer(run, 'One.');
    expect(await look()).toEqual(['One.']);
  });

  it('takes the old mark off before it sets another where reactions add up', async () => {
    const { begin, say, wait, steer, look, answer, conversationKey } = aNetwork(open(), {
      showsOneReaction: false,
    });
    const run = await begin('a');
    await say('b');
    await wait();
    await steer(run);
    expect(await look()).toEqual(['-👀 b']);
    await pass(conversationKey);
    expect(await look()).toEqual(['+✍️ b']);
    await answer(run, 'Done.');
    expect(await look()).toEqual(['Done.', '-✍️ b']);
  });

  it.each([
    ['/stop', { kind: 'stop', isPrivileged: true, isAll: false }],
    ['a full queue', undefined],
  ] as const)('takes the mark of a waiting message off after %s', async (_, stop) => {
    const { begin, say, wait, look, command } = aNetwork(open(), { cap: 1, drop: 'old' });
    await begin('a');
    await say('b');
    await wait();
    if (stop) await command(stop);
    else await say('c');
    expect(await look()).toContain('-👀 b');
  });

  it('takes every mark off when the run that took the messages breaks off', async () => {
    const store = open();
    const { begin, say, wait, steer, look } = aNetwork(store);
    const run = await begin('a');
    await store.write(acknowledge, { ...run, messageId: 'a' as MessageId, emoji: '⚡' });
    await say('b');
    await wait();
    await steer(run);
    await look();
    await endWithout(store, run, 'error');
    expect((await look()).sort()).toEqual(['-⚡ a', '-✍️ b'].sort());
  });

  it('shows that a retained steer waits again after its run has broken off', async () => {
    const store = open();
    const { begin, say, wait, steer, look, claim } = aNetwork(store, { mode: 'steer-backlog' });
    const run = await begin('a');
    await say('b');
    await wait();
    await steer(run);
    expect(await look()).toEqual(['+✍️ b']);
    await endWithout(store, run, 'error');
    expect(await look()).toEqual(['+👀 b']);
    await claim();
    expect(await look()).toEqual(['-👀 b']);
  });

  it('sends no mark that no longer holds when its turn comes', async () => {
    const store = open();
    const { begin, laneKey, say, steer, answer, deliver, look } = aNetwork(store);
    const run = await begin('a');
    await say('b');
    await steer(run);
    await showMarksNow(store, laneKey);
    await answer(run, 'Done.');
    expect(await deliver()).toEqual(['Done.']);
    expect(await look()).toEqual([]);
  });

  it('makes one call for each mark, however often it is looked for and whatever the network says', async () => {
    const store = open();
    for (const result of [sent, limited, refused]) {
      const { begin, say, steer, look, answer, conversationKey } = aNetwork(store);
      const run = await begin('a');
      await say('b');
      await steer(run);
      expect(await look(result)).toEqual(['+✍️ b']);
      await pass(conversationKey);
      for (let times = 0; times < 3; times += 1) expect(await look()).toEqual([]);
      await answer(run, 'Done.');
      expect(await look()).toEqual(result === sent ? ['Done.', '-✍️ b'] : ['Done.']);
    }
    expect(await store.read(readUndelivered, { limit: 10 })).toEqual([]);
  });

  it('sends an answer ahead of marks, also of those that wait for a rate limit', async () => {
    const { begin, say, wait, steer, look, answer, deliver } = aNetwork(open());
    const run = await begin('a');
    for (const message of ['b', 'c']) await say(message);
    await wait();
    await steer(run);
    await steer(run);
    await answer(run, 'One.', { marks });
    expect(await look(limited)).toEqual(['One.', '-👀 b']);
    await answer(await begin('d'), 'Two.');
    expect(await deliver()).toEqual(['Two.']);
  });

  it("leaves the agent's own reaction and the sign of a failure where they have replaced the mark", async () => {
    const store = open();
    const { begin, look, answer } = aNetwork(store);
    const messageId = 'a' as MessageId;
    const first = await begin('a');
    await store.write(acknowledge, { ...first, messageId, emoji: '⚡' });
    expect(await look()).toEqual(['+⚡ a']);
    const contents = [{ kind: 'reaction', messageId, emoji: '🎉' }] as const;
    await store.write(storeToolParts, { ...first, key: 'call', route: routeFor(first), contents });
    await answer(first, 'One.');
    expect(await look()).toEqual(['+🎉 a', 'One.']);
    const second = await begin('b');
    await store.write(acknowledge, { ...second, messageId: 'b' as MessageId, emoji: '⚡' });
    await look();
    const sign = { kind: 'reaction', messageId: 'b' as MessageId, emoji: failedReaction } as const;
    const parts = [{ route: routeFor(second), content: sign, purpose: 'notice' }] as const;
    await answer(second, '', { outcome: 'failed', parts });
    expect(await look()).toEqual([`+${failedReaction} b`]);
  });

  it('takes a mark off again after a rate limit, five times at most', async () => {
    const { begin, say, wait, look, command, conversationKey } = aNetwork(open());
    await begin('a');
    await say('b');
    await wait();
    await command({ kind: 'stop', isPrivileged: true, isAll: false });
    const soon: SendOutcome = { kind: 'retry', afterMs: 0, reason: 'no answer' };
    for (let times = 0; times < 5; times += 1) {
      expect((await look(soon)).at(-1)).toBe('-👀 b');
      await pass(conversationKey);
    }
    expect(await look(soon)).toEqual([]);
  });

  it('takes off a mark whose process was killed in its call, although answers come first', async () => {
    const store = open();
    const { begin, say, steer, answer, look, laneKey, conversationKey } = aNetwork(store);
    const run = await begin('a');
    await say('b');
    await steer(run);
    await showMarksNow(store, laneKey);
    const network = { showsOneReaction: true };
    await aCourier(store, conversationKey, { ...network, holder: 'dead', leaseMs: -1 }).claimPart();
    await answer(run, 'Done.');
    const courier = aCourier(store, conversationKey, network);
    expect((await courier.record(await courier.claimPart(), sent, true)).kind).toBe('empty');
    expect(await look()).toEqual(['-✍️ b']);
  });

  it('takes a mark off once the network is back, however long it was away', async () => {
    const { begin, say, wait, look, command, conversationKey } = aNetwork(open());
    await begin('a');
    await say('b');
    await wait();
    await command({ kind: 'stop', isPrivileged: true, isAll: false });
    const away: SendOutcome = { kind: 'retry', afterMs: 3_000, reason: 'ECONNREFUSED', isOutage: true };
    for (let times = 0; times < 10; times += 1) {
      expect((await look(away)).at(-1)).toBe('-👀 b');
      await pass(conversationKey);
    }
    expect(await look()).toEqual(['-👀 b']);
    expect(await look()).toEqual([]);
  });

  it('shows that a taken message waits while its run waits for room in a budget', async () => {
    const store = open();
    const { begin, claim, look, deliver, tell } = aNetwork(store);
    const { laneKey, epoch, runId } = await begin('a');
    const refusal = {
      scope: 'gateway',
      key: 'gateway:2001-05-07',
      limit: 9,
      needs: 5,
      isHeld: true,
    } as const;
    const pause = { reason: 'room', workedMs: 0, waitMs: -1, modelCalls: [], notice: undefined };
    await store.write(parkForBudget, { laneKey, epoch, runId, refusal, ...pause });
    await tell();
    expect(await deliver()).toEqual(['+👀 a']);
    expect((await claim()).isResumed).toBe(true);
    expect(await look()).toEqual(['-👀 a']);
  });
});

const statements: string[] = [];
const memory = await openMemoryStore((connection) => {
  return (text) => {
    const statement = connection.prepare(text);
    return new Proxy(statement, {
      get: (of, name) => {
        const value = Reflect.get(of, name);
        if (typeof value !== 'function') return value;
        return (...values: unknown[]) => {
          if (['run', 'get', 'all'].includes(String(name))) statements.push(text);
          const result = value.apply(of, values);
          return result === of ? of : result;
        };
      },
    });
  };
});

afterAll(() => memory.sqlite.close());

it('costs no statement for a message that doesn’t wait or if marks are off, and one for a marked one', async () => {
  const count = async (settings: MarkSettings | undefined, steers: boolean) => {
    const { say, laneKey, worker } = aConversation(memory.store, { settings: { mode: 'steer' } });
    statements.length = 0;
    await say('a');
    const claimed = await worker.claim(laneKey, 10_000, { marks: settings });
    if (claimed.kind !== 'run') throw new Error('expected a run');
    if (steers) await say('b');
    const joined = { framing, marks: settings, delivery: 'one-at-a-time' } as const;
    if (steers) await memory.store.write(takeSteers, { ...claimed.run, ...joined });
    await worker.answer(claimed.run, 'Done.', { marks: settings });
    return statements.length;
  };
  await count(marks, true);
  const off = { ...marks, channels: { test: 'off' } } as const;
  expect(await count(undefined, false)).toBeGreaterThan(10);
  expect(await count(marks, false)).toBe(await count(undefined, false));
  expect(await count(off, true)).toBe(await count(undefined, true));
  expect(await count(marks, true)).toBe((await count(undefined, true)) + 1);
});
