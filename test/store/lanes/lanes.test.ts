import { expect, it } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import { plainText } from '../../../src/contracts/formatted-text.ts';
import { partKey } from '../../../src/contracts/ids.ts';
import { textOf } from '../../../src/contracts/message.ts';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import { recordPreview } from '../../../src/store/delivery/preview.ts';
import { readOpenNotices } from '../../../src/store/delivery/queue-alert-message.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { commitToolTurn, markToolStarted, storeNotice } from '../../../src/store/lanes/commit-turn.ts';
import { readPreview } from '../../../src/store/lanes/recover-run.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { readTimeline } from '../../../src/store/reads/read-timeline.ts';
import { readHistory } from '../../../src/store/reads/read-transcript.ts';
import english from '../../../src/texts/en.json' with { type: 'json' };
import { aConversation, aCourier } from '../a-conversation.ts';
import { aCommand, aLane, aMessage, aWorker, defaults, framing, routeFor, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

/** Reads when the waiting messages of a lane arrived, and when they are due. */
const waitingTimes: StoreQuery<
  { readonly laneKey: string },
  readonly { readonly createdAt: number; readonly dueAt: number }[]
> = {
  query: 'waitingTimes',
  run: (tx, { laneKey }) =>
    tx.db
      .selectFrom('inbox')
      .select(['createdAt', 'dueAt'])
      .where('laneKey', '=', laneKey)
      .where('state', '=', 'waiting')
      .orderBy('seq')
      .execute(),
};

describeEachDatabase('the lane protocol', (open, beside) => {
  const texts = async (sessionId: string) =>
    (await open().read(readHistory, { sessionId })).map((m) => `${m.role}: ${textOf(m.parts)}`);

  /** Claims the run `times` times, each under a lease that expires with nothing done. */
  const crashIn = async (worker: ReturnType<typeof aWorker>, laneKey: string, times: number) => {
    for (let tries = 1; tries <= times; tries++) {
      await worker.claimRun(laneKey, 1);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };

  /** Shows a preview; returns its platform id. */
  const showPreview = async (run: ClaimedRun, text: string): Promise<string> => {
    const { runId, laneKey, epoch } = run;
    const key = partKey(`${runId}:preview:0`);
    const part = { key, route: routeFor(run), content: { kind: 'text', text: plainText(text) } } as const;
    await open().write(recordPreview, { kind: 'sending', key, runId, part });
    await open().write(recordPreview, { kind: 'sent', key, messageId: '77', laneKey, epoch });
    return '77';
  };

  it('stores a redelivered event once', async () => {
    const worker = aWorker(open());
    const message = aMessage({ conversation: unique('c'), text: 'hi' });
    const first = await worker.accept(message);
    const second = await worker.accept(message);
    expect(first.acceptances[0]?.kind).toBe('accepted');
    expect(second.acceptances[0]?.kind).toBe('duplicate');
  });

  it('answers a message and leaves the lane idle', async () => {
    const { begin, answer, claimPart } = aConversation(open());
    const run = await begin();
    const answered = await answer(run, 'hello');
    expect(answered.next).toEqual({ kind: 'idle' });
    expect(await texts(run.sessionId)).toEqual(['user: hi', 'assistant: hello']);
    expect((await claimPart()).part.content).toMatchObject({
      kind: 'text',
      text: { text: 'hello' },
    });
  });

  it('sends notices while the run lasts and none after its end', async () => {
    const { begin, answer, claimPart, claimNext, record } = aConversation(open());
    const run = await begin();
    const say = (key: string) => {
      const content = { kind: 'text', text: { text: 'not yet', spans: [] } } as const;
      const { laneKey, epoch, runId } = run;
      return open().write(storeNotice, { laneKey, epoch, runId, key, route: routeFor(run), content });
    };
    expect((await say(`${run.runId}:busy`)).deliveries).toHaveLength(1);
    await answer(run, 'hello');
    expect((await say(`${run.runId}:late`)).deliveries).toEqual([]);
    const sent = { kind: 'sent', receipts: [] } as const;
    for (const text of ['not yet', 'hello']) {
      const claimed = await claimPart();
      expect(claimed.part.content).toMatchObject({ text: { text } });
      await record(claimed, sent);
    }
    expect((await claimNext()).kind).toBe('empty');
  });

  it('collects waiting messages of one authority into one run after the quiet window', async () => {
    const { say, claimRun, begin, answer } = aConversation(open(), {
      settings: { mode: 'collect', quietMs: 600 },
    });
    const run = await begin('start');
    await say('a');
    await say('b');
    await say('c', { item: { authority: 'guest' } });
    const answered = await answer(run, 'ok');
    expect(answered.next?.kind).toBe('armed');
    const delayMs = answered.next?.kind === 'armed' ? answered.next.delayMs : 0;
    await new Promise((resolve) => setTimeout(resolve, delayMs + 5));
    const second = await claimRun();
    expect((await texts(second.sessionId)).slice(-2)).toEqual(['user: a', 'user: b']);
    await answer(second, 'ok');
    const third = await claimRun();
    expect(third.authority).toBe('guest');
    expect((await texts(third.sessionId)).at(-1)).toBe('user: c');
  });

  it.each([
    ['quiet window', { mode: 'collect', quietMs: 60_000 }],
    ['debounce', { mode: 'steer', debounceMs: 60_000 }],
  ] as const)('ends a %s at ten times its length, even if messages keep arriving', async (_, over) => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, ...over } });
    const say = (text: string) => worker.accept(aMessage({ conversation, text, lane }));
    if (over.mode === 'collect') {
      await say('start');
      await worker.claimRun(lane.key);
    }
    await say('a');
    await say('b');
    const waiting = () => open().read(waitingTimes, { laneKey: lane.key });
    const [first, second] = await waiting();
    if (!first || !second) throw new Error('nothing waits');
    expect([first.dueAt, second.dueAt]).toEqual([second.createdAt + 60_000, second.createdAt + 60_000]);
    // As if they had kept coming for nine and a half windows, and then for more than ten.
    for (const agoMs of [570_000, 30_001]) {
      await beside.sql(
        `update inbox set "createdAt" = "createdAt" - ${agoMs}, "dueAt" = "dueAt" - ${agoMs} where "laneKey" = '${lane.key}'`,
      );
      await say('and on');
      const rows = await waiting();
      const [oldest = 0, newest = 0] = [rows.at(0)?.createdAt, rows.at(-1)?.createdAt];
      expect(newest - oldest).toBeGreaterThan(540_000);
      const end = Math.max(newest, oldest + 600_000);
      expect(rows.map(({ dueAt }) => dueAt)).toEqual(rows.map(() => end));
    }
  });

  it('aborts the active run in interrupt mode', async () => {
    const { say, begin } = aConversation(open(), { settings: { mode: 'interrupt' } });
    const run = await begin('one');
    const { effects } = await say('two');
    expect(effects.cancels).toEqual([{ runId: run.runId, reason: 'interrupt' }]);
    const boundary = await open().write(takeSteers, { ...run, framing, delivery: 'one-at-a-time' });
    expect(boundary).toEqual({ steers: [], cancelReason: 'interrupt' });
  });

  it('gives up a run after three attempts with a notice, and the lane continues', async () => {
    const { laneKey: key, worker, say, claim, claimPart } = aConversation(open());
    await say();
    await crashIn(worker, key, 3);
    // Clients of the lane learn the run's end from the step that gave it up, because no process works on it any more.
    expect(await claim()).toMatchObject({
      kind: 'again',
      effects: { gaveUp: [{ laneKey: key, reason: 'gave_up' }] },
    });
    expect((await claim()).kind).toBe('idle');
    expect((await claimPart()).part.content).toMatchObject({
      text: { text: english.restartGaveUp },
    });
  });

  it('marks a run given up in a group with ⚠, or a line if that is refused, and alerts the owner', async () => {
    const talk = aConversation(open(), { chatKind: 'group' });
    const { laneKey, conversationKey, worker, say, claim, claimRun, claimPart, record } = talk;
    await say();
    const run = await claimRun(1);
    const preview = await showPreview(run, 'so far');
    await new Promise((resolve) => setTimeout(resolve, 5));
    await crashIn(worker, laneKey, 2);
    expect((await claim()).kind).toBe('again');
    const { replyTo } = routeFor(run);
    const removal = await claimPart();
    expect(removal.part.content).toEqual({ kind: 'delete', messageId: preview });
    await record(removal, { kind: 'sent', receipts: [] });
    const sign = await claimPart();
    expect(sign.part.content).toEqual({ kind: 'reaction', messageId: replyTo, emoji: '⚠' });
    const refused = { kind: 'failed', failure: { kind: 'rejected' }, reason: 'none here' } as const;
    expect(await record(sign, refused, true)).toMatchObject({
      part: { content: { kind: 'text', text: { text: english.internalFailure } } },
    });
    const notices = await open().read(readOpenNotices, { limit: 1000 });
    expect(notices.filter(({ subject }) => subject === conversationKey)).toMatchObject([
      { kind: 'run-failed', values: { reason: 'gave up', run: run.runId } },
    ]);
  });

  it('says which calls of a run that was given up may have had an effect', async () => {
    const { laneKey, worker, say, claim, claimRun } = aConversation(open());
    await say();
    const { epoch, runId, sessionId } = await claimRun(1);
    const held = { laneKey, epoch, runId };
    const calls = ['begun', 'waiting'].map((callId) => ({ callId, name: 'act', input: '{}' }));
    const message = { id: unique('turn'), sessionId, model: 'test', parts: [] };
    await open().write(commitToolTurn, { ...held, message, calls });
    await open().write(markToolStarted, { ...held, messageId: message.id, callId: 'begun' });
    await new Promise((resolve) => setTimeout(resolve, 5));
    await crashIn(worker, laneKey, 2);
    expect((await claim()).kind).toBe('again');
    const history = await open().read(readHistory, { sessionId });
    const results = history.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content] : [])),
    );
    expect(results).toEqual(['interrupted by a restart, outcome unknown', 'cancelled']);
  });

  it('shows in the timeline that a run was given up', async () => {
    const { laneKey: key, worker, say, claim } = aConversation(open());
    await say();
    await crashIn(worker, key, 3);
    await claim();
    const items = await open().read(readTimeline, { laneKey: key, limit: 10 });
    expect(items.map((item) => item.text)).toEqual(['hi', english.restartGaveUp]);
  });

  it('counts attempts from zero after an answer, when the run continues with a steer', async () => {
    const { laneKey: key, worker, say, claim, claimRun, answer } = aConversation(open());
    await say('one');
    await crashIn(worker, key, 2);
    const run = await claimRun(1);
    await say('two');
    expect((await answer(run, 'first answer')).steers).toHaveLength(1);
    await crashIn(worker, key, 2);
    const last = await claim();
    expect(last.kind).toBe('again');
  });

  it("stops the run and cancels its sender's waiting messages", async () => {
    const { conversation, worker, saying, claimRun } = aConversation(open(), {
      settings: { mode: 'followup' },
    });
    await worker.accept(saying('one'), saying('two'));
    const run = await claimRun();
    const { effects, acceptances } = await worker.accept(
      aCommand(conversation, { kind: 'stop', isPrivileged: false, isAll: false }),
    );
    expect(acceptances[0]).toEqual({ kind: 'command', command: 'stop' });
    expect(effects.cancels).toEqual([{ runId: run.runId, reason: 'stop' }]);
    const idle = await worker.accept(
      aCommand(conversation, { kind: 'stop', isPrivileged: false, isAll: false }, 'bob'),
    );
    expect(idle.acceptances[0]?.kind).toBe('refused');
  });

  it('keeps the lane within its cap and says what was dropped', async () => {
    const worker = aWorker(open());
    for (const drop of ['summarize', 'old', 'new'] as const) {
      const conversation = unique('c');
      const lane = aLane(conversation, { settings: { ...defaults, mode: 'followup', cap: 2, drop } });
      await worker.accept(...['a', 'b'].map((text) => aMessage({ conversation, text, lane })));
      const { acceptances, effects } = await worker.accept(aMessage({ conversation, text: 'c', lane }));
      expect(acceptances[0]?.kind).toBe(drop === 'new' ? 'refused' : 'accepted');
      expect(effects.deliveries).toEqual([`test/bot/${conversation}`]);
      const run = await worker.claimRun(lane.key);
      const expected = {
        summarize: ['system: <overflow>\na\n</context>', 'user: b'],
        old: ['user: b'],
        new: ['user: a'],
      };
      expect(await texts(run.sessionId)).toEqual(expected[drop]);
    }
  });

  it('joins an album under one decision of the mention gate', async () => {
    const { say, claim, claimRun } = aConversation(open());
    const bundle = { name: 'album:1', windowMs: 800 };
    const first = await say('picture 1', { item: { bundle, passesGate: false } });
    expect(first.acceptances[0]?.kind).toBe('held');
    const second = await say('@bot picture 2', { item: { bundle } });
    expect(second.acceptances[0]?.kind).toBe('accepted');
    expect((await claim()).kind).toBe('armed');
    await new Promise((resolve) => setTimeout(resolve, 820));
    const run = await claimRun();
    expect(await texts(run.sessionId)).toEqual(['user: picture 1', 'user: @bot picture 2']);
  });

  it('shows unmentioned group messages once, with the next triggering message', async () => {
    const { say, begin, answer } = aConversation(open());
    const overheard = await say('lunch?', { item: { passesGate: false } });
    expect(overheard.acceptances[0]).toEqual({ kind: 'ignored', reason: 'not-mentioned' });
    const run = await begin('@bot what do you think?');
    expect(await texts(run.sessionId)).toEqual([
      'system: <context>\nlunch?\n</context>',
      'user: @bot what do you think?',
    ]);
    await answer(run, 'pizza');
    const second = await begin('@bot and?');
    expect((await texts(second.sessionId)).slice(3)).toEqual(['user: @bot and?']);
  });

  it('marks a part found in sending as unknown and continues with the next', async () => {
    const { conversationKey, begin, answer } = aConversation(open());
    for (const text of ['one', 'two']) {
      await answer(await begin(text), `re ${text}`);
    }
    const hasty = aCourier(open(), conversationKey, { leaseMs: 1 });
    const first = await hasty.claimPart();
    await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await aCourier(open(), conversationKey, { holder: 'boot-2' }).claimPart();
    expect(second.part.content).toMatchObject({ text: { text: 're two' } });
    await expect(hasty.record(first, { kind: 'sent', receipts: [] })).rejects.toSatisfy((error) =>
      hasCode(error, 'stale_epoch'),
    );
  });

  it('keeps session and pending replies of a group that moved to a new id', async () => {
    const { conversation, worker, saying, claimRun, answer } = aConversation(open());
    const moved = unique('super');
    const message = saying();
    await worker.accept(message);
    const run = await claimRun();
    const migrate = { kind: 'migrate', from: conversation, to: moved, toKey: `test/bot/${moved}` } as const;
    await worker.accept({ ...message, eventKey: unique('migrate'), kind: 'migrated', decision: migrate });
    await answer(run, 'hello');
    const { part } = await aCourier(open(), `test/bot/${moved}`).claimPart();
    expect(part.route).toEqual({
      ...routeFor(run),
      conversation: moved,
    });
  });

  it('runs two quick messages of an idle lane in collect mode at once, without a quiet window', async () => {
    const { say, begin } = aConversation(open(), { settings: { mode: 'collect', quietMs: 60_000 } });
    await say('one');
    const run = await begin('two');
    expect(await texts(run.sessionId)).toEqual(['user: one', 'user: two']);
  });

  it("doesn't reuse the preview of an earlier answer for the next one", async () => {
    const { say, begin, answer } = aConversation(open());
    const run = await begin('one');
    const key = `${run.runId}:preview:0`;
    await showPreview(run, 'so far');
    expect(await open().read(readPreview, { runId: run.runId })).toEqual({ key, messageId: '77' });
    await say('two');
    const answered = await answer(run, 'first answer', { preview: key });
    expect(answered.next).toBeUndefined();
    expect(await open().read(readPreview, { runId: run.runId })).toBeUndefined();
  });

  it('replies again to a person who writes after having been unreachable', async () => {
    const { worker, saying, begin, answer, claimPart } = aConversation(open());
    const first = saying('one');
    await worker.accept(first);
    const blocked = { kind: 'membership', isMember: false } as const;
    await worker.accept({ ...first, eventKey: unique('left'), kind: 'membership', decision: blocked });
    await answer(await begin('two'), 'hello again');
    expect((await claimPart()).part.content).toMatchObject({
      text: { text: 'hello again' },
    });
  });
});
