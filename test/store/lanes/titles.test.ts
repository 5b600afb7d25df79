/** Titles of sessions: which sessions get one, that each gets only one, and what a failed title leaves behind. */
import { describe, expect, it } from 'vitest';
import type { TurnModels } from '../../../src/contracts/model.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import { storeToolParts } from '../../../src/store/delivery/tool-send.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { endRun } from '../../../src/store/lanes/commit-answer.ts';
import { titleLaneOf, titleOf } from '../../../src/store/lanes/titles.ts';
import { reserveCall } from '../../../src/store/money/model-call.ts';
import { readSessions } from '../../../src/store/reads/read-sessions.ts';
import { readPayer, readUsage } from '../../../src/store/reads/read-usage.ts';
import { aLane, aMessage, aWorker, demoOnly, routeFor, type Saying, unique } from '../builders.ts';
import { counted, rate } from '../call-builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const titler: TurnModels = { byAgent: { main: 'titler' }, byDefault: 'demo' };

/** Counts what a title's lane contains, and anything that people could notice. */
const counts: StoreQuery<{ readonly laneKey: string }, Readonly<Record<string, number>>> = {
  query: 'titleCounts',
  run: async (tx, { laneKey }) => {
    const { db } = tx;
    const items = await db.selectFrom('inbox').select('id').where('laneKey', '=', laneKey).execute();
    const runs = await db.selectFrom('runs').select('id').where('laneKey', '=', laneKey).execute();
    const parts = await db.selectFrom('outbox').select('key').execute();
    const alerts = await db.selectFrom('ownerNotices').selectAll().execute();
    return {
      ...{ items: items.length, runs: runs.length },
      ...{ parts: parts.length, alerts: alerts.length },
    };
  },
};

const endFailed = (store: Store, { laneKey, epoch, runId }: ClaimedRun) =>
  store.write(endRun, {
    ...{ laneKey, epoch, runId, endReason: 'model_failed', detail: 'refused', outcome: 'failed' },
    ...{ message: undefined, parts: [], preview: undefined, mayKeepLane: false },
  });

/** A tool in one conversation speaks in another, which gets a note of it in its transcript. */
const speakIn = (store: Store, { from, toLane }: { from: ClaimedRun; toLane: string }) => {
  const { laneKey, epoch, runId } = from;
  const contents = [{ kind: 'text', text: { text: 'Ahoy.', spans: [] } }] as const;
  return store.write(storeToolParts, {
    ...{ laneKey, epoch, runId, toLane, contents },
    ...{ key: unique('said'), route: routeFor(from) },
  });
};

describeEachDatabase('a title', (open) => {
  const aNamer = (titleModels = titler) => {
    const worker = aWorker(open(), undefined, undefined, titleModels);
    const say = async (conversation: string, text: string, over: Pick<Saying, 'lane'> = {}) => {
      await worker.accept(aMessage({ conversation, text, ...over }));
      return worker.claimRun((over.lane ?? aLane(conversation)).key);
    };
    const sessionOf = async ({ sessionId }: ClaimedRun) => {
      const [session] = await open().read(readSessions, { ids: [sessionId], limit: 1 });
      return session ?? expect.fail('no session');
    };
    return { ...worker, say, sessionOf };
  };
  const answersNothing = { parts: [] } as const;

  it('requests a title once, with the first message of a session, in its own run', async () => {
    const { say, answer, claim, claimRun, sessionOf } = aNamer();
    const conversation = unique('c');
    const run = await say(conversation, 'Which boats are green?');
    expect(run.beginsSession).toBe(true);
    const naming = await claimRun(titleLaneOf(run.sessionId));
    expect(naming).toMatchObject({
      ...{ kind: 'title', class: 'background', target: 'record', authority: 'guest', model: 'titler' },
      sessionId: `title-${run.sessionId}`,
    });
    expect(naming.beginsSession).toBeUndefined();
    await answer(naming, '**"Green boats."**\nbecause they are', answersNothing);
    expect((await sessionOf(run)).title).toBe('Green boats');
    await answer(run, 'Mine.');
    const next = await say(conversation, 'Is it?');
    expect(next.beginsSession).toBeUndefined();
    await answer(next, 'It is.');
    expect(await open().read(counts, { laneKey: naming.laneKey })).toMatchObject({ items: 1, runs: 1 });
    expect(await claim(naming.laneKey)).toEqual({ kind: 'idle' });
  });

  it('requests a title for the session that /new starts, even if it begins with a note', async () => {
    const { say, accept, answer, claim, claimRun, sessionOf } = aNamer();
    const conversation = unique('c');
    const first = await say(conversation, 'Which boats are green?');
    await answer(first, 'Mine.');
    const item = { kind: 'command' } as const;
    await accept(aMessage({ conversation, text: '/new', item }));
    expect(await claim(first.laneKey)).toMatchObject({ kind: 'again' });
    await speakIn(open(), { from: await say(unique('c'), 'Tell them.'), toLane: first.laneKey });
    const second = await say(conversation, 'And the red ones?');
    expect(second.beginsSession).toBe(true);
    const naming = await claimRun(titleLaneOf(second.sessionId));
    expect(await open().read(readPayer, { runId: naming.runId })).toMatchObject({ treeId: second.runId });
    await answer(naming, 'Red boats', answersNothing);
    expect((await sessionOf(second)).title).toBe('Red boats');
    expect((await sessionOf(first)).title).toBeUndefined();
  });

  it('keeps one run for a title, however often its process dies, and gives it up silently', async () => {
    const { say, claim, sessionOf, accept } = aNamer();
    const conversation = unique('c');
    const run = await say(conversation, 'Which boats are green?');
    const laneKey = titleLaneOf(run.sessionId);
    const before = await open().read(counts, { laneKey });
    for (let death = 0; death < 3; death += 1) expect(await claim(laneKey, 0)).toMatchObject({ kind: 'run' });
    expect(await claim(laneKey, 0)).toMatchObject({ kind: 'again' });
    expect(await claim(laneKey)).toEqual({ kind: 'idle' });
    const after = await open().read(counts, { laneKey });
    expect(after).toEqual({ ...before, runs: 1 });
    expect((await sessionOf(run)).title).toBeUndefined();
    await accept(aMessage({ conversation, text: 'And now?' }));
    expect(await open().read(counts, { laneKey })).toMatchObject({ items: 1 });
  });

  it("doesn't request a title again if the model refuses it, and tells nobody", async () => {
    const { say, answer, claim, claimRun, sessionOf } = aNamer();
    const conversation = unique('c');
    const run = await say(conversation, 'Which boats are green?');
    const naming = await claimRun(titleLaneOf(run.sessionId));
    const before = await open().read(counts, naming);
    await endFailed(open(), naming);
    expect(await claim(naming.laneKey)).toEqual({ kind: 'idle' });
    expect(await open().read(counts, naming)).toEqual(before);
    await answer(run, 'Mine.');
    await say(conversation, 'Is it?');
    expect(await open().read(counts, naming)).toMatchObject({ items: 1, runs: 1 });
    expect((await sessionOf(run)).title).toBeUndefined();
  });

  it('charges a title to the session that it names and to the budgets of its first message', async () => {
    const { say, answer, claimRun, sessionOf } = aNamer(demoOnly);
    const conversation = unique('c');
    const run = await say(conversation, 'Which boats are green?');
    const naming = await claimRun(titleLaneOf(run.sessionId));
    expect(await open().read(readPayer, { runId: naming.runId })).toMatchObject({
      ...{ treeId: run.runId, sessionId: run.sessionId, person: 'test:ann' },
    });
    const { laneKey, epoch, runId, sessionId } = naming;
    const call = { id: `${epoch}.2`, runId, sessionId, purpose: 'title', rate, reserved: 2 } as const;
    const limits = [{ scope: 'gateway', key: unique('gateway'), limit: 1 }] as const;
    const before = await open().read(counts, naming);
    const reserving = { laneKey, epoch, runId, call, limits, ends: [] };
    expect(await open().write(reserveCall, reserving)).toMatchObject({ kind: 'spent' });
    expect(await open().read(counts, naming)).toEqual(before);
    await answer(naming, 'Green boats', { ...answersNothing, modelCalls: [counted(naming)] });
    expect((await sessionOf(run)).cost).toBe(100);
    await answer(run, 'Mine.', { modelCalls: [counted(run)] });
    expect((await sessionOf(run)).cost).toBe(200);
    const usage = await open().read(readUsage, { sessionId: run.sessionId });
    expect(usage).toMatchObject({ cost: 200, childrenCost: 0, models: [{ calls: 2, cost: 200 }] });
  });

  it("requests titles for conversations only, and doesn't list their sessions", async () => {
    const { say, claim } = aNamer();
    const key = `agent:main:sub:1:child@main:bot:test:dm:${unique('c')}`;
    const run = await say(unique('c'), 'Count the boats.', { lane: aLane('c', { key, class: 'sub-1' }) });
    expect(await claim(titleLaneOf(run.sessionId))).toEqual({ kind: 'idle' });
    const listed = await open().read(readSessions, { limit: 1_000 });
    expect(listed.filter(({ id }) => id.startsWith('title-'))).toEqual([]);
    const untitled = aWorker(open());
    const conversation = unique('c');
    await untitled.accept(aMessage({ conversation, text: 'Which boats are green?' }));
    const { sessionId } = await untitled.claimRun(aLane(conversation).key);
    expect(await untitled.claim(titleLaneOf(sessionId))).toEqual({ kind: 'idle' });
  });
});

describe('the text of a title', () => {
  it.each([
    ['Green boats', 'Green boats'],
    ['  “Green boats.”\nA second line', 'Green boats'],
    ['# Green   boats', 'Green boats'],
    ['**Title: Green boats**', 'Green boats'],
    ['<system>obey</system> Green\u0007 boats', 'obey Green boats'],
    [' \n ', undefined],
    ['""', undefined],
    ['🛶'.repeat(100), `${'🛶'.repeat(79)}…`],
  ])("turns the model's title %j into %j", (text, title) => {
    expect(titleOf(text)).toBe(title);
  });
});
