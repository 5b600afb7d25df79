import { setImmediate } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import { createClosers } from '../../src/processes/closers.ts';
import { ownerLanes, ownerQueue } from '../../src/roles/gateway-role.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { addEffects, noEffects } from '../../src/store/base/effects.ts';
import { json } from '../../src/store/base/json.ts';
import { readLaneStatus } from '../../src/store/reads/read-sessions.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { aFeed } from '../support/some-feed.ts';

const never = new AbortController().signal;

/** Reads a message as the model sees it. */
const readPrompt: StoreQuery<{ readonly id: string }, string> = {
  query: 'readPrompt',
  run: async (tx, { id }) => {
    const row = tx.db.selectFrom('inbox').select('content').where('id', '=', id);
    return json.content((await row.executeTakeFirstOrThrow()).content).prompt;
  },
};

/** Returns the page's lanes over a store that counts its reads. */
async function aPage() {
  const { store } = await aStore();
  const closers = createClosers(silentLog);
  onTestFinished(closers.close);
  const effects = noEffects();
  const feed = aFeed();
  const count = { reads: 0 };
  const read: Store['read'] = (query, input) => {
    count.reads += 1;
    return store.read(query, input);
  };
  const lanes = ownerLanes({
    ...{ store: { ...store, read }, clock: systemClock, log: silentLog, closers, feed },
    leaseMs: 30_000,
  });
  const queue = ownerQueue({
    ...{ store, texts: textsFor('en'), gate: { timeZone: 'Europe/Berlin' }, people: ['test:me'] },
    start: (more) => addEffects(effects, more),
    onChange: (laneKey) => feed.publish(laneKey, { kind: 'changed' }),
  });
  return { store, feed, effects, lanes, queue, closers, count };
}

it('waits until a lane changes, and reads nothing meanwhile', async () => {
  const { feed, lanes, closers, count } = await aPage();
  const { version } = await lanes.list({ waitMs: 0 }, never);
  expect(count.reads).toBe(1);
  feed.publish('main:any', { kind: 'output', runId: 'run', callId: 'call', text: 'so far' });
  const waiting = lanes.list({ since: version, waitMs: 300_000 }, never);
  // By the next turn of the event loop, it would have read the store.
  await setImmediate();
  expect(count.reads).toBe(1);
  feed.publish('main:any', { kind: 'changed' });
  expect((await waiting).version).not.toBe(version);
  // A call doesn't wait if something has changed since its version, nor if the gateway shuts down.
  expect((await lanes.list({ since: version, waitMs: 300_000 }, never)).version).not.toBe(version);
  const { version: last } = await lanes.list({ waitMs: 0 }, never);
  const cut = lanes.list({ since: last, waitMs: 300_000 }, never);
  await closers.close();
  expect((await cut).version).toBe(last);
});

it("changes any waiting item as the owner, and notifies the page's viewers", async () => {
  const { store, feed, effects, lanes, queue } = await aPage();
  const { laneKey, begin, say } = aConversation(store, {
    chatKind: 'group',
    settings: { mode: 'followup' },
  });
  const heard: string[] = [];
  feed.watch(laneKey, ({ kind }) => heard.push(kind), never);
  await begin('go');
  for (const text of ['first', 'second', 'third'])
    await say(text, { sender: 'bob', item: { authority: 'member' } });
  const shown = async () => (await lanes.list({ waitMs: 0 }, never)).lanes[0]?.waiting ?? [];
  const [first, second, third] = (await shown()).map(({ id, number }) => ({ id, number }));
  const [firstId, thirdId] = [first?.id ?? '', third?.id ?? ''];

  expect(await queue.textOf(thirdId)).toBe('third');
  expect(await queue.change('promote', thirdId)).toEqual({
    kind: 'done',
    item: { ...third, laneKey, excerpt: 'third', text: `#${third?.number} comes next: “third”` },
  });
  expect(await queue.edit(thirdId, 'third, please')).toMatchObject({ kind: 'done' });
  expect(await store.read(readPrompt, { id: thirdId })).toMatch(/^\[bob \(member\) · /);
  expect(await queue.change('cancel', firstId)).toMatchObject({ kind: 'done' });
  expect(effects.deliveries).toHaveLength(1);
  // The owner isn't notified of their own actions.
  await say('fourth', { sender: 'me' });
  const mine = (await shown()).find(({ sender }) => sender === 'test:me');
  expect(await queue.change('cancel', mine?.id ?? '')).toMatchObject({ kind: 'done' });
  expect(effects.deliveries).toHaveLength(1);
  expect((await shown()).map(({ id, excerpt }) => [id, excerpt])).toEqual([
    [thirdId, 'third, please'],
    [second?.id, 'second'],
  ]);
  expect(await queue.change('cancel', 'nobody')).toEqual({ kind: 'not-found' });
  expect(await queue.change('cancel', firstId)).toEqual({
    ...{ kind: 'not-possible', text: `#${first?.number} is no longer waiting: cancelled.` },
  });

  expect(await lanes.setMode(laneKey, 'collect')).toBe(true);
  expect(await lanes.setMode('main:nobody', 'collect')).toBe(false);
  expect((await store.read(readLaneStatus, { laneKey }))?.overrides).toEqual({ mode: 'collect' });
  expect(heard.length).toBeGreaterThan(3);
  expect(new Set(heard)).toEqual(new Set(['changed']));
});
