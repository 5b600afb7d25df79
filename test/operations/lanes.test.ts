import { setImmediate } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import { countLaneChanges, listLanes, setMode } from '../../src/operations/lanes.ts';
import { Refusal } from '../../src/operations/operation.ts';
import { cancelQueued, editQueued, promoteQueued, showQueued } from '../../src/operations/queue.ts';
import { createClosers } from '../../src/processes/closers.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { addEffects, type Effects, noEffects } from '../../src/store/base/effects.ts';
import { json } from '../../src/store/base/json.ts';
import { readLaneStatus } from '../../src/store/reads/read-sessions.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { aFeed } from '../support/some-feed.ts';
import { someOperations } from '../support/some-operations.ts';

const never = new AbortController().signal;

/** Reads a message as the model sees it. */
const readPrompt: StoreQuery<{ readonly id: string }, string> = {
  query: 'readPrompt',
  run: async (tx, { id }) => {
    const row = tx.db.selectFrom('inbox').select('content').where('id', '=', id);
    return json.content((await row.executeTakeFirstOrThrow()).content).prompt;
  },
};

function done<Answer>(answer: Answer | Refusal): Answer {
  if (answer instanceof Refusal) throw new Error(answer.text);
  return answer;
}

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
  const deps = {
    ...someOperations(),
    store: { ...store, read },
    log: silentLog,
    start: (more: Effects) => addEffects(effects, more),
    changed: (laneKey: string) => feed.publish(laneKey, { kind: 'changed' }),
    lanes: { changes: countLaneChanges({ clock: systemClock, feed, closers }), leaseMs: 30_000 },
  };
  const caller = { by: 'page', signIn: 'browser', signal: never };
  const lanes = (asked: { readonly since?: number; readonly waitMs: number }) =>
    listLanes.run(deps, asked, caller).then(done);
  const queue = {
    textOf: (id: string) => showQueued.run(deps, { id }, caller).then(done),
    promote: (id: string) => promoteQueued.run(deps, { id }, caller),
    edit: (id: string, text: string) => editQueued.run(deps, { id, text }, caller),
    cancel: (id: string) => cancelQueued.run(deps, { id }, caller),
  };
  const mode = (lane: string) => setMode.run(deps, { lane, mode: 'collect' }, caller);
  return { store, feed, effects, lanes, queue, mode, closers, count };
}

it('waits until a lane changes, and reads nothing meanwhile', async () => {
  const { feed, lanes, closers, count } = await aPage();
  const { version } = await lanes({ waitMs: 0 });
  expect(count.reads).toBe(1);
  feed.publish('main:any', { kind: 'output', runId: 'run', callId: 'call', text: 'so far' });
  const waiting = lanes({ since: version, waitMs: 300_000 });
  // By the next turn of the event loop, it would have read the store.
  await setImmediate();
  expect(count.reads).toBe(1);
  feed.publish('main:any', { kind: 'changed' });
  expect((await waiting).version).not.toBe(version);
  // A call doesn't wait if something has changed since its version, nor if the gateway shuts down.
  expect((await lanes({ since: version, waitMs: 300_000 })).version).not.toBe(version);
  const { version: last } = await lanes({ waitMs: 0 });
  const cut = lanes({ since: last, waitMs: 300_000 });
  await closers.close();
  expect((await cut).version).toBe(last);
});

it("changes any waiting item as the owner, and notifies the page's viewers", async () => {
  const { store, feed, effects, lanes, queue, mode } = await aPage();
  const { laneKey, begin, say } = aConversation(store, {
    chatKind: 'group',
    settings: { mode: 'followup' },
  });
  const heard: string[] = [];
  feed.watch(laneKey, ({ kind }) => heard.push(kind), never);
  await begin('go');
  for (const text of ['first', 'second', 'third'])
    await say(text, { sender: 'bob', item: { authority: 'member' } });
  const shown = async () => (await lanes({ waitMs: 0 })).lanes[0]?.waiting ?? [];
  const [first, second, third] = (await shown()).map(({ id, number }) => ({ id, number }));
  const [firstId, thirdId] = [first?.id ?? '', third?.id ?? ''];

  expect(await queue.textOf(thirdId)).toEqual({ text: 'third' });
  expect(await queue.promote(thirdId)).toEqual({
    ...{ ...third, laneKey, excerpt: 'third', text: `#${third?.number} comes next: “third”` },
  });
  expect(await queue.edit(thirdId, 'third, please')).toMatchObject({ id: thirdId });
  expect(await store.read(readPrompt, { id: thirdId })).toMatch(/^\[bob \(member\) · /);
  expect(await queue.cancel(firstId)).toMatchObject({ id: firstId });
  expect(effects.deliveries).toHaveLength(1);
  // The owner isn't notified of their own actions.
  await say('fourth', { sender: 'me' });
  const mine = (await shown()).find(({ sender }) => sender === 'test:me');
  expect(await queue.cancel(mine?.id ?? '')).toMatchObject({ id: mine?.id });
  expect(effects.deliveries).toHaveLength(1);
  expect((await shown()).map(({ id, excerpt }) => [id, excerpt])).toEqual([
    [thirdId, 'third, please'],
    [second?.id, 'second'],
  ]);
  expect(await queue.cancel('nobody')).toMatchObject({ code: 'not_found' });
  const gone = `#${first?.number} is no longer waiting: cancelled.`;
  expect(await queue.cancel(firstId)).toMatchObject({ code: 'not_possible', text: gone });

  expect(await mode(laneKey)).toEqual({ status: 'done' });
  expect(await mode('main:nobody')).toMatchObject({ code: 'not_found' });
  expect((await store.read(readLaneStatus, { laneKey }))?.overrides).toEqual({ mode: 'collect' });
  expect(heard.length).toBeGreaterThan(3);
  expect(new Set(heard)).toEqual(new Set(['changed']));
});
