/** What people do to waiting messages, and what the mode `interrupt` does to their order. */
import { expect, it } from 'vitest';
import type { QueueMode } from '../../../src/contracts/queue-settings.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import { conversationKeyOf } from '../../../src/store/base/keys.ts';
import {
  cancelItem,
  cancelItems,
  editItem,
  promoteItem,
  readAuthor,
} from '../../../src/store/items/change-item.ts';
import type { Actor } from '../../../src/store/items/item-change.ts';
import { readHistory } from '../../../src/store/reads/read-transcript.ts';
import { readWaitingItems } from '../../../src/store/reads/read-waiting-items.ts';
import { aConversation } from '../a-conversation.ts';
import { aCommand, aMessage, aRoute, endWithout, newCommand, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

describeEachDatabase('waiting items', (open) => {
  it('lists waiting items in order, with number, sender, excerpt and state', async () => {
    const { say, store, lane, numbers } = await aQueue(open());
    await say('first');
    const content = { text: 'a photo', prompt: 'a photo', sender: { id: 'bob', name: 'Bob' }, sentAt: 1 };
    const attachments = [{ ref: 'f', kind: 'image' as const }];
    await say('', { sender: 'bob', item: { content: { ...content, attachments } } });
    await say('/new', { item: { kind: 'command' } });
    const items = await store.read(readWaitingItems, { laneKey: lane.key });
    const shown = items.map(({ kind, state, sender, senderName, excerpt, files }) => [
      kind,
      state,
      `${sender} ${senderName}`,
      excerpt,
      files,
    ]);
    expect(shown).toEqual([
      ['message', 'waiting', 'test:ann ann', 'first', 0],
      ['message', 'fetching', 'test:bob Bob', 'a photo', 1],
      ['command', 'waiting', 'test:ann ann', '/new', 0],
    ]);
    expect(await numbers()).toEqual(items.map(({ number }) => number));
    for (const item of items) expect(item.ageMs).toBeGreaterThanOrEqual(0);
  });

  it('cancels an item once, records who did it, and runs the rest in order', async () => {
    const { say, change, numbers, drain, facts, changed } = await aQueue(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    const [, b = 0] = await numbers();
    const cancelled = await change('cancel', b);
    expect(cancelled.changed).toEqual({ kind: 'done', excerpt: 'b' });
    expect(cancelled.effects.wakes).toHaveLength(1);
    expect((await change('cancel', b)).changed).toEqual({ kind: 'ended', outcome: 'cancelled' });
    expect((await change('cancel', 999)).changed).toEqual({ kind: 'unknown' });
    expect(await drain()).toEqual([['a'], ['c']]);
    expect(await facts()).toEqual(['answered null', 'cancelled by test:ann', 'answered null']);
    expect(await changed(b)).toEqual(['cancel by test:ann']);
  });

  it("cancels all items of a sender, or everybody's items for an owner", async () => {
    const { say, store, lane, facts } = await aQueue(open(), { cap: 2 });
    for (const text of ['a', 'b', 'c']) await say(text);
    await say('/new', { item: { kind: 'command' } });
    const bob = actor('bob');
    const all = (who: Actor) => store.write(cancelItems, { laneKey: lane.key, actor: who });
    expect((await all(bob)).count).toBe(0);
    expect((await all(actor('ann'))).count).toBe(4);
    expect((await all(actor('ann'))).count).toBe(0);
    expect(new Set(await facts())).toEqual(new Set(['cancelled by test:ann']));
    expect((await readLane(store, lane.key)).openRuns).toBe(0);
    await say('d');
    const { overflow } = await store.read(laneRow, { laneKey: lane.key });
    expect(overflow).toBeNull();
  });

  it('runs a promoted item next, keeps its number and wakes an idle lane', async () => {
    const { say, change, numbers, drain, changed } = await aQueue(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    const before = await numbers();
    const [, b = 0, c = 0] = before;
    const promoted = await change('promote', c);
    expect(promoted.changed).toEqual({ kind: 'done', excerpt: 'c' });
    expect(promoted.effects.wakes).toMatchObject([{ delayMs: 0 }]);
    expect(await numbers()).toEqual([c, ...before.slice(0, 2)]);
    await change('promote', b);
    // Repeating it changes nothing and isn't recorded.
    await change('promote', b);
    await say('d');
    expect(await drain()).toEqual([['b'], ['c'], ['a'], ['d']]);
    expect(await changed(b)).toEqual(['promote by test:ann']);
  });

  it('promotes all parts of an album together', async () => {
    const { say, change, numbers, drain } = await aQueue(open());
    await say('a');
    const bundle = { name: 'album:7', windowMs: 0 };
    await say('one', { item: { bundle } });
    await say('two', { item: { bundle } });
    const [, , two = 0] = await numbers();
    await change('promote', two);
    expect(await drain()).toEqual([['one', 'two'], ['a']]);
  });

  it('keeps sender, authority and position of an edited item', async () => {
    const { say, change, numbers, store, lane, drain, changed } = await aQueue(open());
    await say('a');
    await say('b', { sender: 'bob', item: { authority: 'guest' } });
    const [, b = 0] = await numbers();
    expect(await store.read(readAuthor, { laneKey: lane.key, number: b })).toEqual({
      name: 'bob',
      authority: 'guest',
      sentAt: 1,
      isGroup: false,
    });
    expect((await change('edit', b, { text: 'better', who: owner })).changed).toEqual({
      kind: 'done',
      excerpt: 'better',
    });
    expect((await store.read(readWaitingItems, { laneKey: lane.key }))[1]).toMatchObject({
      sender: 'test:bob',
      excerpt: 'better',
    });
    expect(await drain()).toEqual([['a'], ['better']]);
    expect(await changed(b)).toEqual(['edit by test:boss']);
  });

  it('lets the sender or an owner change an item, but only an owner promote it in a group', async () => {
    const { say, change, numbers } = await aQueue(open());
    await say('a');
    const [a = 0] = await numbers();
    const member = { ...actor('ann'), mayPromoteOwn: false };
    for (const kind of ['cancel', 'edit', 'promote'] as const)
      expect((await change(kind, a, { who: actor('bob') })).changed).toEqual({ kind: 'not-permitted' });
    expect((await change('promote', a, { who: member })).changed).toEqual({ kind: 'not-permitted' });
    // The same id on another network is a different person.
    const namesake = { ...actor('bob'), people: ['other:ann'] };
    expect((await change('cancel', a, { who: namesake })).changed).toEqual({ kind: 'not-permitted' });
    for (const kind of ['edit', 'promote', 'cancel'] as const)
      expect((await change(kind, a, { who: owner })).changed.kind).toBe('done');
  });

  it('tells a sender in another conversation that somebody else cancelled their item', async () => {
    const { say, change, numbers, lane } = await aQueue(open());
    await say('a');
    await say('b');
    const [a = 0, b = 0] = await numbers();
    const here = { ...owner, conversationKey: `test/bot/${lane.key.split(':').at(-1)}` };
    expect((await change('cancel', a, { who: here })).effects.deliveries).toEqual([]);
    expect((await change('cancel', b, { who: owner })).effects.deliveries).toEqual([here.conversationKey]);
  });

  it('either cancels or takes an item when both happen at once', async () => {
    const { say, change, numbers, worker, lane, facts } = await aQueue(open());
    for (let round = 0; round < 15; round++) {
      await say('now or never');
      const [number = 0] = await numbers();
      const [{ changed: cancelled }, claim] = await Promise.all([
        change('cancel', number),
        worker.claim(lane.key),
      ]);
      expect([cancelled.kind, claim.kind]).toEqual(
        claim.kind === 'run' ? ['working', 'run'] : ['done', 'idle'],
      );
      if (claim.kind === 'run') await worker.answer(claim.run, 'ok');
      expect((await facts()).at(-1)).toBe(claim.kind === 'run' ? 'answered null' : 'cancelled by test:ann');
    }
  });

  it('names the files of an item that the cap summarizes', async () => {
    const { say, drain } = await aQueue(open(), { cap: 1 });
    const attachments = [{ ref: 'f', kind: 'image', name: 'cat.jpg' }] as const;
    const content = { text: '', prompt: '', sender: { id: 'ann', name: 'Ann' }, sentAt: 1, attachments };
    await say('', { item: { content } });
    await say('b');
    expect(await drain()).toEqual([['<overflow>\n[attachment cat.jpg, left out]\n</context>', 'b']]);
  });

  it('applies the cap to each event of a batch as the earlier events have left it', async () => {
    const { say, worker, lane, conversation, drain } = await aQueue(open(), { cap: 1, drop: 'new' });
    const messageId = unique('m');
    await say('a', { messageId });
    const about = { ...aMessage({ conversation, text: '', messageId }), eventKey: unique('event') };
    const gone = { ...about, decision: { kind: 'delete', note: '', route: aRoute(conversation) } } as const;
    const two = () => ['b', 'c'].map((text) => aMessage({ conversation, text, lane }));
    for (const batch of [[gone, ...two()], two()]) {
      const { acceptances } = await worker.accept(...batch);
      expect(acceptances.slice(-2).map(({ kind }) => kind)).toEqual(['accepted', 'refused']);
      expect(await drain()).toEqual([['b']]);
    }
  });
});

describeEachDatabase('a message held for the rest of its album', (open) => {
  it.each(['cancelled', 'deleted', 'stopped', 'unreachable'] as const)(
    'gives a held message one outcome when it is %s, and counts its event as accepted',
    async (end) => {
      const { say, numbers, change, worker, store, facts, lane, conversation } = await aQueue(open());
      const bundle = { name: 'album:7', windowMs: 60_000 };
      const messageId = unique('m');
      await say('part', { messageId, item: { bundle, passesGate: false } });
      const [part = 0] = await numbers();
      const [event] = await store.read(eventsOf, { conversation });
      expect(event).toBe('held');
      const about = { ...aMessage({ conversation, text: '', messageId }), eventKey: unique('event') };
      const route = aRoute(conversation);
      if (end === 'cancelled') await change('cancel', part);
      if (end === 'deleted') await worker.accept({ ...about, decision: { kind: 'delete', note: '', route } });
      if (end === 'unreachable')
        await worker.accept({ ...about, decision: { kind: 'membership', isMember: false } });
      const stop = aCommand(conversation, { kind: 'stop', isPrivileged: false, isAll: false });
      if (end === 'stopped') await worker.accept(stop);
      const outcomes = await facts();
      expect(outcomes).toHaveLength(1);
      expect(outcomes[0]).toMatch(/^(?:cancelled|failed) /);
      expect((await store.read(eventsOf, { conversation }))[0]).toBe('accepted');
      expect((await readLane(store, lane.key)).openRuns).toBe(0);
    },
  );
});

describeEachDatabase('an interruption', (open, beside) => {
  it('runs the interrupting message next, with what waited for the same route, in order of arrival', async () => {
    const queue = await aQueue(open(), { mode: 'interrupt' });
    const { say, worker, lane, drain, changed } = queue;
    await say('begin');
    const run = await worker.claimRun(lane.key);
    const elsewhere = { item: { route: aRoute(unique('c')) } };
    const guest = { sender: 'bob', item: { authority: 'guest' as const } };
    await say('x1', guest);
    await say('c1');
    await say('x2', elsewhere);
    await say('c2');
    await say('newest');
    expect(run.runId).toBeDefined();
    await queue.abort(run);
    expect(await drain()).toEqual([['c1', 'c2', 'newest'], ['x2'], ['x1']]);
    expect(new Set(await changed())).toEqual(new Set(['interrupt by test:ann']));
  });

  it('runs the interrupting message next, however many wait', async () => {
    const store = open();
    const queue = await aQueue(store, { mode: 'interrupt', cap: 1000 });
    const { say, worker, lane } = queue;
    await say('begin');
    const run = await worker.claimRun(lane.key);
    await say('x', { sender: 'bob', item: { authority: 'guest' } });
    await beside.sql(manyLikeIt(lane.key, 600));
    await say('newest');
    await queue.abort(run);
    const next = await worker.claimRun(lane.key);
    const { parts } = (await store.read(readHistory, { sessionId: next.sessionId })).at(-1) ?? { parts: [] };
    expect(parts).toEqual([{ type: 'text', data: { text: 'newest' } }]);
  });

  it('records no change of order if nothing is ahead of the interrupting message', async () => {
    const queue = await aQueue(open(), { mode: 'interrupt' });
    const { say, worker, lane, drain, changed } = queue;
    await say('begin');
    const run = await worker.claimRun(lane.key);
    await say('c1');
    await say('newest');
    await queue.abort(run);
    expect(await drain()).toEqual([['c1', 'newest']]);
    expect(await changed()).toEqual([]);
  });
});

const owner: Actor = { ref: 'test:boss', people: ['test:boss'], mayChangeAny: true, mayPromoteOwn: true };
const actor = (id: string): Actor => ({
  ref: `test:${id}`,
  people: [`test:${id}`],
  mayChangeAny: false,
  mayPromoteOwn: true,
});

type Settings = {
  readonly mode?: QueueMode;
  readonly cap?: number;
  readonly drop?: 'new' | 'old' | 'summarize';
};
type Over = Pick<Parameters<typeof aMessage>[0], 'sender' | 'item' | 'messageId'>;
type Change = { readonly text?: string; readonly who?: Actor };

/** Returns a lane that no other test uses, with short names for its steps. */
async function aQueue(store: Store, { mode = 'followup', cap = 20, drop = 'summarize' }: Settings = {}) {
  const { conversation, lane, worker, saying, answer } = aConversation(store, {
    settings: { mode, cap, drop, quietMs: 0 },
  });
  const say = async (text: string, { item, ...over }: Over = {}) => {
    const message = saying(text, { ...over });
    const { decision } = message;
    if (decision.kind !== 'accept') throw new Error('it is a message');
    const content =
      item?.kind === 'command' ? { ...decision.item.content, command: newCommand } : decision.item.content;
    await worker.accept({
      ...message,
      decision: { kind: 'accept', item: { ...decision.item, content, ...item } },
    });
  };
  const numbers = async () =>
    (await store.read(readWaitingItems, { laneKey: lane.key })).map(({ number }) => number);
  const change = (
    kind: 'cancel' | 'promote' | 'edit',
    number: number,
    { text = 'other', who }: Change = {},
  ) => {
    const asked = { laneKey: lane.key, number, actor: who ?? actor('ann') };
    if (kind === 'cancel') return store.write(cancelItem, { ...asked, told: 'cancelled {excerpt}' });
    if (kind === 'promote') return store.write(promoteItem, asked);
    return store.write(editItem, { ...asked, text, prompt: text, newId: crypto.randomUUID() });
  };
  /** Runs until the lane is idle; returns what each run was given. */
  const drain = async () => {
    const runs: string[][] = [];
    for (;;) {
      const claim = await worker.claim(lane.key);
      if (claim.kind === 'idle') return runs;
      if (claim.kind === 'again') continue;
      if (claim.kind !== 'run') throw new Error(`not to be drained: ${JSON.stringify(claim)}`);
      const { told } = await readLane(store, lane.key);
      runs.push(told.filter(({ runId }) => runId === claim.run.runId).map(({ text }) => text));
      await answer(claim.run, 'ok');
    }
  };
  const facts = async () =>
    (await readLane(store, lane.key)).inbox.map(({ outcome, reason }) => `${outcome} ${reason}`);
  const abort = (run: Awaited<ReturnType<typeof worker.claimRun>>) =>
    endWithout(store, run, 'interrupt', { mayKeepLane: true });
  const changed = (number?: number) =>
    store.read(changesOf, { laneKey: lane.key, ...(number !== undefined && { number }) });
  return { say, numbers, change, drain, facts, abort, changed, store, lane, conversation, worker };
}

const laneRow: StoreQuery<{ readonly laneKey: string }, { readonly overflow: string | null }> = {
  query: 'laneRow',
  run: (tx, { laneKey }) =>
    tx.db.selectFrom('lanes').select('overflow').where('key', '=', laneKey).executeTakeFirstOrThrow(),
};

const changesOf: StoreQuery<{ readonly laneKey: string; readonly number?: number }, readonly string[]> = {
  query: 'changesOf',
  run: async (tx, { laneKey, number }) => {
    const rows = await tx.db
      .selectFrom('itemChanges')
      .innerJoin('inbox', 'inbox.id', 'itemChanges.inboxId')
      .select(['itemChanges.kind', 'itemChanges.by', 'inbox.seq'])
      .where('itemChanges.laneKey', '=', laneKey)
      .execute();
    return rows
      .filter(({ seq }) => number === undefined || seq === number)
      .map(({ kind, by }) => `${kind} by ${by}`);
  },
};

/** Reads the ledger's outcomes of a conversation's messages, oldest first. */
const eventsOf: StoreQuery<{ readonly conversation: string }, readonly string[]> = {
  query: 'eventsOf',
  run: async (tx, { conversation }) => {
    const rows = await tx.db
      .selectFrom('ledger')
      .select('outcome')
      .where('conversationKey', '=', conversationKeyOf(aRoute(conversation)))
      .where('eventKey', 'like', 'message:%')
      .execute();
    return rows.map(({ outcome }) => outcome);
  },
};

/** Returns statements that store `count` more copies of the guest's message in the lane. */
function manyLikeIt(laneKey: string, count: number): string {
  const same = ['rank', 'kind', 'state', 'account', 'conversationKey', 'senderId', 'authority', 'route']
    .concat(['content', 'isFetching', 'dueAt', 'createdAt'])
    .map((column) => `"${column}"`)
    .join(', ');
  return `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})
    insert into inbox (id, "laneKey", seq, ${same})
    select id || n, "laneKey", seq + n, ${same} from inbox, numbers
      where "laneKey" = '${laneKey}' and authority = 'guest';
    update lanes set "nextSeq" = "nextSeq" + ${count} where key = '${laneKey}'`;
}
