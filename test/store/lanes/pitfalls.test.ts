/** What gateways of this kind have shipped, and what becomes of it here; the others are listed in docs/pitfalls.md. */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import type { MessageId } from '../../../src/contracts/ids.ts';
import type { Outcome } from '../../../src/contracts/outcome.ts';
import { queueModes } from '../../../src/contracts/queue-settings.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { aLane, aMessage, aWorker, defaults, endWithout, framing, routeFor, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

const ends: readonly { readonly endReason: string; readonly outcome: Outcome }[] = [
  { endReason: 'timeout', outcome: 'failed' },
  { endReason: 'error', outcome: 'failed' },
  { endReason: 'stop', outcome: 'cancelled' },
  { endReason: 'interrupt', outcome: 'cancelled' },
  { endReason: 'turn-limit', outcome: 'failed' },
];

describeEachDatabase('a lane', (open) => {
  const endAs = (run: ClaimedRun, end: (typeof ends)[number]) => endWithout(open(), run, end.endReason, end);

  it('runs what waits behind a run, however that run ends, in every mode (pitfall 1)', async () => {
    for (const mode of queueModes) {
      for (const end of ends) {
        const worker = aWorker(open());
        const conversation = unique('c');
        const lane = aLane(conversation, { settings: { ...defaults, mode, quietMs: 0 } });
        await worker.accept(aMessage({ conversation, text: 'first', lane }));
        const run = await worker.claimRun(lane.key);
        await worker.accept(aMessage({ conversation, text: 'second', lane }));
        const { next } = await endAs(run, end);
        expect({ mode, end, next }).toEqual({ mode, end, next: { kind: 'armed', delayMs: 0 } });
        await worker.answer(await worker.claimRun(lane.key), 'ok');
        const { inbox, told } = await readLane(open(), lane.key);
        expect(told.map(({ text }) => text)).toEqual(['first', 'second']);
        expect(inbox.map(({ outcome }) => outcome)).toEqual([end.outcome, 'answered']);
      }
    }
  });

  it('lets no later message past one that waits, also where the later would fit the run (pitfall 3)', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    await worker.accept(aMessage({ conversation, text: 'first' }));
    const run = await worker.claimRun(aLane(conversation).key);
    await worker.accept(aMessage({ conversation, text: 'second', item: { authority: 'guest' } }));
    await worker.accept(aMessage({ conversation, text: 'third' }));
    const { steers } = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
    expect(steers).toEqual([]);
    await worker.answer(run, 'ok');
    for (let runs = 2; runs > 0; runs--)
      await worker.answer(await worker.claimRun(aLane(conversation).key), 'ok');
    const { told } = await readLane(open(), aLane(conversation).key);
    expect(told.map(({ text }) => text)).toEqual(['first', 'second', 'third']);
  });

  it('keeps a steer in the transcript that its run took right before it was aborted (pitfall 4)', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    await worker.accept(aMessage({ conversation, text: 'first' }));
    const run = await worker.claimRun(aLane(conversation).key);
    await worker.accept(aMessage({ conversation, text: 'steer' }));
    const { steers } = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
    expect(steers).toHaveLength(1);
    await endAs(run, { endReason: 'timeout', outcome: 'failed' });
    const { inbox, told } = await readLane(open(), aLane(conversation).key);
    expect(told.map(({ text }) => text)).toEqual(['first', 'steer']);
    expect(inbox.map(({ state, outcome }) => [state, outcome !== null])).toEqual([
      ['ended', true],
      ['ended', true],
    ]);
  });

  it('knows a message again that is delivered once more long after it was answered (pitfall 5)', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const message = aMessage({ conversation, text: 'once' });
    await worker.accept(message);
    await worker.answer(await worker.claimRun(aLane(conversation).key), 'ok');
    for (let n = 0; n < 6; n++) {
      await worker.accept(aMessage({ conversation, text: `later ${n}` }));
      await worker.answer(await worker.claimRun(aLane(conversation).key), 'ok');
    }
    const known = { kind: 'duplicate', of: { outcome: 'accepted' } };
    expect((await worker.accept(message)).acceptances).toEqual([known]);
    expect((await worker.claim(aLane(conversation).key)).kind).toBe('idle');
  });

  it('goes on with a batch whose run was cut off, and takes nothing of it twice (pitfall 6)', async () => {
    const [first, second] = [aWorker(open(), 'boot-a'), aWorker(open(), 'boot-b')];
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'collect', quietMs: 0 } });
    const batch = ['a', 'b', 'c'].map((text) => aMessage({ conversation, text, lane }));
    await aWorker(open()).accept(...batch);
    const cut = await first.claimRun(lane.key, 1);
    await pause(5);
    const resumed = await second.claimRun(lane.key);
    expect(resumed).toMatchObject({ runId: cut.runId, isResumed: true });
    await expect(first.answer(cut, 'late')).rejects.toSatisfy((error) => hasCode(error, 'stale_epoch'));
    await second.answer(resumed, 'ok');
    expect((await second.claim(lane.key)).kind).toBe('idle');
    const { told } = await readLane(open(), lane.key);
    expect(told.map(({ text }) => text)).toEqual(['a', 'b', 'c']);
  });

  it('keeps the id of each message of a batch: an edit of any finds it, the answer quotes the last (pitfall 8)', async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'collect', quietMs: 0 } });
    const batch = ['a', 'b', 'c'].map((text) => aMessage({ conversation, text, lane }));
    await worker.accept(...batch);
    const run = await worker.claimRun(lane.key);
    expect(routeFor(run).replyTo).toBe(batch[2]?.messageId as MessageId | undefined);
    for (const message of batch) {
      const edit = { kind: 'edit', text: 'new', prompt: 'new', note: 'it reads new' } as const;
      const decision = { ...edit, newId: crypto.randomUUID() };
      const edited = { ...message, eventKey: unique('edit'), kind: 'edit', decision };
      const { acceptances } = await worker.accept(edited);
      expect(acceptances).toEqual([{ kind: 'noted', effect: 'steered' }]);
    }
    const { inbox } = await readLane(open(), lane.key);
    expect(inbox.slice(0, 3).map(({ messageId }) => messageId)).toEqual(batch.map((one) => one.messageId));
  });
});
