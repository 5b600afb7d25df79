import { expect, it } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import { partKey } from '../../../src/contracts/ids.ts';
import { textOf } from '../../../src/contracts/message.ts';
import { claimDelivery, recordDelivery } from '../../../src/store/delivery/claim-delivery.ts';
import { recordPreview } from '../../../src/store/delivery/record-preview.ts';
import { commitToolTurn, markToolStarted } from '../../../src/store/lanes/commit-turn.ts';
import { readPreview } from '../../../src/store/lanes/recover-run.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { readTimeline } from '../../../src/store/reads/read-timeline.ts';
import { readHistory } from '../../../src/store/reads/read-transcript.ts';
import { english } from '../../../src/texts/english.ts';
import {
  aCommand,
  aLane,
  aMessage,
  aWorker,
  defaults,
  framing,
  holder,
  newCommand,
  routeFor,
  unique,
} from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const policy = { holder, leaseMs: 10_000, repeatSafeMs: 0, resendUnknown: false };

describeEachDatabase('the lane protocol', (open) => {
  const texts = async (sessionId: string) =>
    (await open().read(readHistory, { sessionId })).map((m) => `${m.role}: ${textOf(m.parts)}`);

  /** Claims the run so often, each time under a lease that ends with nothing done. */
  const crashIn = async (worker: ReturnType<typeof aWorker>, laneKey: string, times: number) => {
    for (let tries = 1; tries <= times; tries++) {
      await worker.claimRun(laneKey, 1);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };

  it('stores a redelivered event once', async () => {
    const worker = aWorker(open());
    const message = aMessage({ conversation: unique('c'), text: 'hi' });
    const first = await worker.accept(message);
    const second = await worker.accept(message);
    expect(first.acceptances[0]?.kind).toBe('accepted');
    expect(second.acceptances[0]?.kind).toBe('duplicate');
  });

  it('answers a message and leaves the lane resting', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    const run = await worker.claimRun(aLane(conversation).key);
    const answered = await worker.answer(run, 'hello');
    expect(answered.next).toEqual({ kind: 'idle' });
    expect(await texts(run.sessionId)).toEqual(['user: hi', 'assistant: hello']);
    const delivery = await open().write(claimDelivery, {
      ...policy,
      conversationKey: `test/bot/${conversation}`,
    });
    expect(delivery.kind === 'part' && delivery.part.content).toMatchObject({
      kind: 'text',
      text: { text: 'hello' },
    });
  });

  it('takes in a message that arrives while the final text is written, in the step that would end the run', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    await worker.accept(aMessage({ conversation, text: 'one' }));
    const run = await worker.claimRun(aLane(conversation).key);
    await worker.accept(aMessage({ conversation, text: 'two' }));
    const first = await worker.answer(run, 'first answer');
    expect(first.next).toBeUndefined();
    expect(first.steers.map((m) => textOf(m.parts))).toEqual(['two']);
    const second = await worker.answer(run, 'second answer');
    expect(second.next).toEqual({ kind: 'idle' });
    expect(await texts(run.sessionId)).toEqual([
      'user: one',
      'assistant: first answer',
      'user: two',
      'assistant: second answer',
    ]);
  });

  it('runs one message after the other in followup mode', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'followup' } });
    for (const text of ['one', 'two', 'three']) await worker.accept(aMessage({ conversation, text, lane }));
    for (const text of ['one', 'two', 'three']) {
      const run = await worker.claimRun(lane.key);
      expect((await texts(run.sessionId)).at(-1)).toBe(`user: ${text}`);
      await worker.answer(run, 'ok');
    }
    expect((await worker.claim(lane.key)).kind).toBe('idle');
  });

  it('collects what waits after a quiet window into one run, apart by authority', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'collect', quietMs: 600 } });
    await worker.accept(aMessage({ conversation, text: 'start', lane }));
    const run = await worker.claimRun(lane.key);
    await worker.accept(aMessage({ conversation, text: 'a', lane }));
    await worker.accept(aMessage({ conversation, text: 'b', lane }));
    await worker.accept(aMessage({ conversation, text: 'c', lane, item: { authority: 'guest' } }));
    const answered = await worker.answer(run, 'ok');
    expect(answered.next?.kind).toBe('armed');
    const delayMs = answered.next?.kind === 'armed' ? answered.next.delayMs : 0;
    await new Promise((resolve) => setTimeout(resolve, delayMs + 5));
    const second = await worker.claimRun(lane.key);
    expect((await texts(second.sessionId)).slice(-2)).toEqual(['user: a', 'user: b']);
    await worker.answer(second, 'ok');
    const third = await worker.claimRun(lane.key);
    expect(third.authority).toBe('guest');
    expect((await texts(third.sessionId)).at(-1)).toBe('user: c');
  });

  it('aborts the run under interrupt and runs the newest with the others as context', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'interrupt' } });
    await worker.accept(aMessage({ conversation, text: 'one', lane }));
    const run = await worker.claimRun(lane.key);
    const { effects } = await worker.accept(aMessage({ conversation, text: 'two', lane }));
    expect(effects.cancels).toEqual([{ runId: run.runId, reason: 'interrupt' }]);
    const boundary = await open().write(takeSteers, { ...run, framing, delivery: 'one-at-a-time' });
    expect(boundary).toEqual({ steers: [], cancelReason: 'interrupt' });
  });

  it('refuses every write of a worker whose lane was claimed by another', async () => {
    const first = aWorker(open(), 'boot-a');
    const second = aWorker(open(), 'boot-b');
    const conversation = unique('c');
    await aWorker(open()).accept(aMessage({ conversation, text: 'hi' }));
    const stale = await first.claimRun(aLane(conversation).key, 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const run = await second.claimRun(aLane(conversation).key);
    expect(run).toMatchObject({ runId: stale.runId, isResumed: true, epoch: stale.epoch + 1 });
    await expect(first.answer(stale, 'late')).rejects.toSatisfy((error) => hasCode(error, 'stale_epoch'));
    await second.answer(run, 'right');
    expect(await texts(run.sessionId)).toEqual(['user: hi', 'assistant: right']);
  });

  it('gives up a run after three attempts with a notice, and the lane goes on', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const key = aLane(conversation).key;
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    await crashIn(worker, key, 3);
    expect((await worker.claim(key)).kind).toBe('again');
    expect((await worker.claim(key)).kind).toBe('idle');
    const delivery = await open().write(claimDelivery, {
      ...policy,
      conversationKey: `test/bot/${conversation}`,
    });
    expect(delivery.kind === 'part' && delivery.part.content).toMatchObject({
      text: { text: english.restartGaveUp },
    });
  });

  it('says of the calls of a run that it gave up which may have had their effect', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const { key: laneKey } = aLane(conversation);
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    const { epoch, runId, sessionId } = await worker.claimRun(laneKey, 1);
    const held = { laneKey, epoch, runId };
    const calls = ['begun', 'waiting'].map((callId) => ({ callId, name: 'act', input: '{}' }));
    const message = { id: unique('turn'), sessionId, model: 'test', parts: [] };
    await open().write(commitToolTurn, { ...held, message, calls });
    await open().write(markToolStarted, { ...held, messageId: message.id, callId: 'begun' });
    await new Promise((resolve) => setTimeout(resolve, 5));
    await crashIn(worker, laneKey, 2);
    expect((await worker.claim(laneKey)).kind).toBe('again');
    const history = await open().read(readHistory, { sessionId });
    const results = history.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content] : [])),
    );
    expect(results).toEqual(['interrupted by a restart, outcome unknown', 'cancelled']);
  });

  it('tells in the timeline that it gave a run up', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const { key } = aLane(conversation);
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    await crashIn(worker, key, 3);
    await worker.claim(key);
    const items = await open().read(readTimeline, { laneKey: key, limit: 10 });
    expect(items.map((item) => item.text)).toEqual(['hi', english.restartGaveUp]);
  });

  it('counts the tries anew once a run has answered and goes on with a steer', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const { key } = aLane(conversation);
    await worker.accept(aMessage({ conversation, text: 'one' }));
    await crashIn(worker, key, 2);
    const run = await worker.claimRun(key, 1);
    await worker.accept(aMessage({ conversation, text: 'two' }));
    expect((await worker.answer(run, 'first answer')).steers).toHaveLength(1);
    await crashIn(worker, key, 2);
    const last = await worker.claim(key);
    expect(last.kind).toBe('again');
  });

  it('begins a new session behind what was sent before the command', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation);
    await worker.accept(aMessage({ conversation, text: 'old' }));
    const fresh = aMessage({ conversation, text: '/new' });
    if (fresh.decision.kind !== 'accept') throw new Error('unreachable');
    const { item } = fresh.decision;
    const command = {
      ...item,
      kind: 'command' as const,
      content: { ...item.content, command: newCommand },
    };
    await worker.accept({ ...fresh, decision: { kind: 'accept', item: command } });
    await worker.accept(aMessage({ conversation, text: 'young' }));
    const before = await worker.claimRun(lane.key);
    await worker.answer(before, 'to the old');
    expect((await worker.claim(lane.key)).kind).toBe('again');
    const after = await worker.claimRun(lane.key);
    expect(after.sessionId).not.toBe(before.sessionId);
    expect(await texts(after.sessionId)).toEqual(['user: young']);
  });

  it('stops the run and cancels what its sender has waiting', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'followup' } });
    await worker.accept(
      aMessage({ conversation, text: 'one', lane }),
      aMessage({ conversation, text: 'two', lane }),
    );
    const run = await worker.claimRun(lane.key);
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

  it('keeps the lane under its cap and says what gave way', async () => {
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

  it('joins an album under one gate decision', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const bundle = { name: 'album:1', windowMs: 800 };
    const first = await worker.accept(
      aMessage({ conversation, text: 'picture 1', item: { bundle, passesGate: false } }),
    );
    expect(first.acceptances[0]?.kind).toBe('held');
    const second = await worker.accept(aMessage({ conversation, text: '@bot picture 2', item: { bundle } }));
    expect(second.acceptances[0]?.kind).toBe('accepted');
    expect((await worker.claim(aLane(conversation).key)).kind).toBe('armed');
    await new Promise((resolve) => setTimeout(resolve, 820));
    const run = await worker.claimRun(aLane(conversation).key);
    expect(await texts(run.sessionId)).toEqual(['user: picture 1', 'user: @bot picture 2']);
  });

  it('shows unmentioned group messages once, with the next triggering message', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const key = aLane(conversation).key;
    const overheard = await worker.accept(
      aMessage({ conversation, text: 'lunch?', item: { passesGate: false } }),
    );
    expect(overheard.acceptances[0]).toEqual({ kind: 'ignored', reason: 'not-mentioned' });
    await worker.accept(aMessage({ conversation, text: '@bot what do you think?' }));
    const run = await worker.claimRun(key);
    expect(await texts(run.sessionId)).toEqual([
      'system: <context>\nlunch?\n</context>',
      'user: @bot what do you think?',
    ]);
    await worker.answer(run, 'pizza');
    await worker.accept(aMessage({ conversation, text: '@bot and?' }));
    const second = await worker.claimRun(key);
    expect((await texts(second.sessionId)).slice(3)).toEqual(['user: @bot and?']);
  });

  it('calls a part that was found in sending unknown, and goes on with the next', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const conversationKey = `test/bot/${conversation}`;
    for (const text of ['one', 'two']) {
      await worker.accept(aMessage({ conversation, text }));
      await worker.answer(await worker.claimRun(aLane(conversation).key), `re ${text}`);
    }
    const first = await open().write(claimDelivery, { ...policy, conversationKey, leaseMs: 1 });
    expect(first.kind).toBe('part');
    await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await open().write(claimDelivery, { ...policy, holder: 'boot-2', conversationKey });
    expect(second.kind === 'part' && second.part.content).toMatchObject({ text: { text: 're two' } });
    if (first.kind !== 'part') throw new Error('unreachable');
    const late = {
      ...policy,
      conversationKey,
      epoch: first.epoch,
      partKey: first.part.key,
      result: { kind: 'sent', receipts: [] } as const,
      claimsNext: true,
    };
    await expect(open().write(recordDelivery, late)).rejects.toSatisfy((error) =>
      hasCode(error, 'stale_epoch'),
    );
  });

  it('replaces a waiting message that is edited and steers the correction of a taken one', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const message = aMessage({ conversation, text: 'red' });
    await worker.accept(message);
    const edit = (text: string) => ({
      ...message,
      eventKey: unique('edit'),
      kind: 'edit',
      decision: {
        kind: 'edit' as const,
        text,
        prompt: text,
        note: `it now reads ${text}`,
        newId: crypto.randomUUID(),
      },
    });
    expect((await worker.accept(edit('blue'))).acceptances[0]).toEqual({ kind: 'noted', effect: 'replaced' });
    expect((await worker.accept(edit('blue'))).acceptances[0]).toEqual({
      kind: 'ignored',
      reason: 'unchanged',
    });
    const run = await worker.claimRun(aLane(conversation).key);
    expect((await worker.accept(edit('green'))).acceptances[0]).toEqual({ kind: 'noted', effect: 'steered' });
    const boundary = await open().write(takeSteers, { ...run, framing, delivery: 'one-at-a-time' });
    expect(boundary.steers.map((m) => textOf(m.parts))).toEqual([
      '(Correction of an earlier message.) green',
    ]);
    await worker.answer(run, 'ok');
    expect((await worker.accept(edit('black'))).acceptances[0]).toEqual({
      kind: 'noted',
      effect: 'after-run',
    });
    expect(await texts(run.sessionId)).toEqual([
      'user: blue',
      'user: (Correction of an earlier message.) green',
      'assistant: ok',
      'system: it now reads black',
    ]);
  });

  it('keeps route-less moves: a migrated group keeps its session and its pending replies', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const moved = unique('super');
    const message = aMessage({ conversation, text: 'hi' });
    await worker.accept(message);
    const run = await worker.claimRun(aLane(conversation).key);
    const migrate = { kind: 'migrate', from: conversation, to: moved, toKey: `test/bot/${moved}` } as const;
    await worker.accept({ ...message, eventKey: unique('migrate'), kind: 'migrated', decision: migrate });
    await worker.answer(run, 'hello');
    const delivery = await open().write(claimDelivery, { ...policy, conversationKey: `test/bot/${moved}` });
    expect(delivery.kind === 'part' && delivery.part.route).toEqual({
      ...routeFor(run),
      conversation: moved,
    });
  });

  it('runs two quick messages of an idle lane in collect mode at once, without a quiet window', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'collect', quietMs: 60_000 } });
    await worker.accept(aMessage({ conversation, text: 'one', lane }));
    await worker.accept(aMessage({ conversation, text: 'two', lane }));
    const run = await worker.claimRun(lane.key);
    expect(await texts(run.sessionId)).toEqual(['user: one', 'user: two']);
  });

  it('does not take the preview of an answer that was given for the preview of the next', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    await worker.accept(aMessage({ conversation, text: 'one' }));
    const run = await worker.claimRun(aLane(conversation).key);
    const key = `${run.runId}:preview:0`;
    const content = { kind: 'text', text: { text: 'so far', spans: [] } } as const;
    await open().write(recordPreview, {
      kind: 'sending',
      key,
      runId: run.runId,
      part: { key: partKey(key), route: routeFor(run), content },
    });
    await open().write(recordPreview, { kind: 'sent', key, messageId: '77' });
    expect(await open().read(readPreview, { runId: run.runId })).toEqual({ key, messageId: '77' });
    await worker.accept(aMessage({ conversation, text: 'two' }));
    const answered = await worker.answer(run, 'first answer', { preview: key });
    expect(answered.next).toBeUndefined();
    expect(await open().read(readPreview, { runId: run.runId })).toBeUndefined();
  });

  it('writes again to whoever writes after having been unreachable', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const first = aMessage({ conversation, text: 'one' });
    await worker.accept(first);
    const blocked = { kind: 'membership', isMember: false } as const;
    await worker.accept({ ...first, eventKey: unique('left'), kind: 'membership', decision: blocked });
    await worker.accept(aMessage({ conversation, text: 'two' }));
    await worker.answer(await worker.claimRun(aLane(conversation).key), 'hello again');
    const delivery = await open().write(claimDelivery, {
      ...policy,
      conversationKey: `test/bot/${conversation}`,
    });
    expect(delivery.kind === 'part' && delivery.part.content).toMatchObject({
      text: { text: 'hello again' },
    });
  });
});
