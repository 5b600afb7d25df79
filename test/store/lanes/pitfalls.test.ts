/** Bugs that gateways of this kind have shipped, and how Parley avoids them; docs/pitfalls.md lists the others. */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import type { MessageId } from '../../../src/contracts/ids.ts';
import type { Outcome } from '../../../src/contracts/outcome.ts';
import { queueModes } from '../../../src/contracts/queue-settings.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { takeSteers } from '../../../src/store/lanes/steer.ts';
import { aConversation } from '../a-conversation.ts';
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

  it('runs the messages that wait for a run, however that run ends, in every mode (pitfall 1)', async () => {
    for (const mode of queueModes) {
      for (const end of ends) {
        const { lane, say, claimRun, begin, answer } = aConversation(open(), {
          settings: { mode, quietMs: 0 },
        });
        const run = await begin('first');
        await say('second');
        const { next } = await endAs(run, end);
        expect({ mode, end, next }).toEqual({ mode, end, next: { kind: 'armed', delayMs: 0 } });
        await answer(await claimRun(), 'ok');
        const { inbox, told } = await readLane(open(), lane.key);
        expect(told.map(({ text }) => text)).toEqual(['first', 'second']);
        expect(inbox.map(({ outcome }) => outcome)).toEqual([end.outcome, 'answered']);
      }
    }
  });

  it('lets no later message overtake a waiting one, even if the later one fits the run (pitfall 3)', async () => {
    const { laneKey, say, claimRun, begin, answer } = aConversation(open());
    const run = await begin('first');
    await say('second', { item: { authority: 'guest' } });
    await say('third');
    const { steers } = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
    expect(steers).toEqual([]);
    await answer(run, 'ok');
    for (let runs = 2; runs > 0; runs--) await answer(await claimRun(), 'ok');
    const { told } = await readLane(open(), laneKey);
    expect(told.map(({ text }) => text)).toEqual(['first', 'second', 'third']);
  });

  it('keeps a steer in the transcript that its run took just before it was aborted (pitfall 4)', async () => {
    const { laneKey, say, begin } = aConversation(open());
    const run = await begin('first');
    await say('steer');
    const { steers } = await open().write(takeSteers, { ...run, framing, delivery: 'all' });
    expect(steers).toHaveLength(1);
    await endAs(run, { endReason: 'timeout', outcome: 'failed' });
    const { inbox, told } = await readLane(open(), laneKey);
    expect(told.map(({ text }) => text)).toEqual(['first', 'steer']);
    expect(inbox.map(({ state, outcome }) => [state, outcome !== null])).toEqual([
      ['ended', true],
      ['ended', true],
    ]);
  });

  it('recognizes a message that is delivered again long after it was answered (pitfall 5)', async () => {
    const { worker, saying, claim, claimRun, begin, answer } = aConversation(open());
    const message = saying('once');
    await worker.accept(message);
    await answer(await claimRun(), 'ok');
    for (let n = 0; n < 6; n++) {
      await answer(await begin(`later ${n}`), 'ok');
    }
    const known = { kind: 'duplicate', of: { outcome: 'accepted' } };
    expect((await worker.accept(message)).acceptances).toEqual([known]);
    expect((await claim()).kind).toBe('idle');
  });

  it('resumes a batch whose run was cut off and takes none of its messages twice (pitfall 6)', async () => {
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

  it('keeps the id of each message of a batch, for edits and quotes (pitfall 8)', async () => {
    const { lane, worker, saying, claimRun } = aConversation(open(), {
      settings: { mode: 'collect', quietMs: 0 },
    });
    const batch = ['a', 'b', 'c'].map((text) => saying(text));
    await worker.accept(...batch);
    const run = await claimRun();
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
