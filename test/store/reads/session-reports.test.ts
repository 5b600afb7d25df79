import { expect, it } from 'vitest';
import { commitSummary } from '../../../src/store/lanes/commit-summary.ts';
import { titleLaneOf } from '../../../src/store/lanes/titles.ts';
import { callIdOf, reserveCall } from '../../../src/store/money/model-call.ts';
import { findSession, readSessionReports } from '../../../src/store/reads/read-sessions.ts';
import { aLane, aMessage, aWorker, demoOnly, unique } from '../builders.ts';
import { counted, rate } from '../call-builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('the list of conversations', (open) => {
  it('lists each conversation with the tokens and cost of all its calls, its title and its summary', async () => {
    const worker = aWorker(open(), undefined, undefined, demoOnly);
    const say = async (conversation: string) => {
      await worker.accept(aMessage({ conversation, text: 'Which boats are green?' }));
      return worker.claimRun(aLane(conversation).key);
    };
    const [conversation, other] = [unique('c'), unique('c')];
    const before = await say(other);
    await worker.answer(before, 'None.', { modelCalls: [counted(before, { cost: 3 })] });
    await worker.accept(aMessage({ conversation: other, text: '/new', item: { kind: 'command' } }));
    await worker.claim(aLane(other).key);
    await worker.answer(await say(other), 'None.');
    const run = await say(conversation);
    const naming = await worker.claimRun(titleLaneOf(run.sessionId));
    await worker.answer(naming, 'Green boats', { parts: [], modelCalls: [counted(naming)] });
    await worker.answer(run, 'Mine.', { modelCalls: [counted(run)] });
    const second = await say(conversation);
    const { laneKey, epoch, runId, sessionId } = second;
    const parts = [{ type: 'text', data: { text: 'A story of boats.' } }] as const;
    await open().write(commitSummary, {
      ...{ laneKey, epoch, runId, sessionId, id: unique('summary'), parts, model: 'test' },
      ...{ keptFrom: 3, contextTokens: 10, modelCalls: [] },
    });
    const id = callIdOf(epoch, 2);
    const unsent = { id, runId, sessionId, purpose: 'turn', rate, reserved: 9 } as const;
    await open().write(reserveCall, { laneKey, epoch, runId, limits: [], ends: [], call: unsent });
    const end = { id, latencyMs: 1, end: { state: 'void' } } as const;
    await worker.answer(second, 'Two.', { modelCalls: [counted(second, { cost: 7 }), end] });

    const [first, ...older] = await open().read(readSessionReports, { limit: 3 });
    expect(first).toMatchObject({
      ...{ id: sessionId, key: laneKey, title: 'Green boats', messageCount: 5, isSummarized: true },
      ...{ tokens: { prompt: 360, completion: 90 }, cost: 207 },
    });
    const [key, nothing] = [aLane(other).key, { prompt: 0, completion: 0 }];
    expect(older).toMatchObject([
      { key, isSummarized: false, tokens: nothing, cost: 0 },
      { key, tokens: { prompt: 120, completion: 30 }, cost: 3 },
    ]);
    for (const idOrKey of [sessionId, laneKey])
      expect(await open().read(findSession, { idOrKey })).toMatchObject({
        kind: 'found',
        session: {
          ...{ id: sessionId, summary: 'A story of boats.' },
          usage: [
            { purpose: 'turn', calls: 2, promptTokens: 240, completionTokens: 60, cost: 107 },
            { purpose: 'title', calls: 1, promptTokens: 120, completionTokens: 30, cost: 100 },
          ],
        },
      });
    expect(await open().read(findSession, { idOrKey: '' })).toEqual({ kind: 'none' });
    expect(await open().read(findSession, { idOrKey: 'nowhere' })).toEqual({ kind: 'none' });
    expect(await open().read(findSession, { idOrKey: naming.sessionId })).toEqual({ kind: 'none' });
  });
});
