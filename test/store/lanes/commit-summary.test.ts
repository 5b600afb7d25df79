import { expect, it } from 'vitest';
import { textOf } from '../../../src/contracts/message.ts';
import { commitSummary, type SummaryInput } from '../../../src/store/lanes/commit-summary.ts';
import { commitToolTurn } from '../../../src/store/lanes/commit-turn.ts';
import { recoverRun } from '../../../src/store/lanes/recover-run.ts';
import { readSessions } from '../../../src/store/reads/read-sessions.ts';
import { readContext, readForkedHistory, readHistory } from '../../../src/store/reads/read-transcript.ts';
import { aLane, aMessage, aWorker, routeFor, unique } from '../builders.ts';
import { counted } from '../call-builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const text = (said: string) => [{ type: 'text', data: { text: said } }] as const;

describeEachDatabase('a summary', (open) => {
  /** Three messages with their answers, and the run of a fourth that isn't answered yet. */
  const aConversation = async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    for (const said of ['one', 'two', 'three', 'four']) {
      await worker.accept(aMessage({ conversation, text: said }));
      const run = await worker.claimRun(aLane(conversation).key);
      if (said === 'four') return { run, worker, sessionId: run.sessionId };
      await worker.answer(run, `${said} heard`);
    }
    throw new Error('test error: no run');
  };
  type Scene = Awaited<ReturnType<typeof aConversation>>;
  const input = ({ run }: Scene, over: Partial<SummaryInput> = {}): SummaryInput => ({
    ...{ laneKey: run.laneKey, epoch: run.epoch, runId: run.runId, sessionId: run.sessionId },
    ...{ id: unique('summary'), parts: text('the story so far'), model: 'test', keptFrom: 5 },
    ...{ contextTokens: 70, modelCalls: [] },
    ...over,
  });
  const shown = async ({ sessionId }: Scene) =>
    (await open().read(readHistory, { sessionId })).map(({ parts }) => textOf(parts));

  it('replaces the messages before the cut with the summary and moves no position', async () => {
    const scene = await aConversation();
    await open().write(commitSummary, input(scene));
    expect(await shown(scene)).toEqual(['the story so far', 'three', 'three heard', 'four']);
    const { messages, tokens } = await open().read(readContext, scene);
    expect([messages.map(({ position }) => position), tokens]).toEqual([[5, 6, 7], 70]);
    await scene.worker.answer(scene.run, 'four heard');
    expect((await shown(scene)).at(-1)).toBe('four heard');
  });

  it('keeps the tool calls of a summarized run known to its next holder', async () => {
    const scene = await aConversation();
    const { laneKey, epoch, runId, sessionId } = scene.run;
    for (const callId of ['a', 'b']) {
      const call = { name: 'act', input: `{"of":"${callId}"}` };
      const parts = [
        { type: 'tool_call', data: { id: callId, finished: true, ...call } },
        { type: 'finish', data: { reason: 'tool_use', time: 1 } },
      ] as const;
      const message = { id: unique('turn'), sessionId, model: 'test', parts };
      await open().write(commitToolTurn, { laneKey, epoch, runId, message, calls: [{ callId, ...call }] });
    }
    // Each turn takes two positions; the first turn has 8 and 9.
    await open().write(commitSummary, input(scene, { keptFrom: 10 }));
    const calls = await open().write(recoverRun, { laneKey, epoch, runId });
    expect(calls.map(({ callId, summarized }) => [callId, summarized])).toEqual([
      ['a', { name: 'act', input: '{"of":"a"}' }],
      ['b', undefined],
    ]);
  });

  it("replaces an earlier summary and doesn't show it among the messages", async () => {
    const scene = await aConversation();
    await open().write(commitSummary, input(scene, { keptFrom: 3 }));
    await open().write(commitSummary, input(scene, { keptFrom: 7, parts: text('more of it') }));
    expect(await shown(scene)).toEqual(['more of it', 'four']);
  });

  it('counts a summary once, however often it is committed', async () => {
    const scene = await aConversation();
    const summary = input(scene, { modelCalls: [counted(scene.run, { cost: 7 })] });
    for (let time = 0; time < 2; time += 1) await open().write(commitSummary, summary);
    expect(await shown(scene)).toHaveLength(4);
    const [session] = await open().read(readSessions, { ids: [scene.sessionId], limit: 1 });
    expect(session).toMatchObject({ cost: 7, promptTokens: 70, completionTokens: 0 });
    const { messages } = await open().read(readContext, scene);
    await open().write(commitSummary, input(scene, { id: unique('other') }));
    expect((await open().read(readContext, scene)).messages).toEqual(messages);
  });

  it('rejects the summary of a holder that has lost the lane', async () => {
    const scene = await aConversation();
    const before = await shown(scene);
    const late = input(scene, { epoch: scene.run.epoch - 1 });
    await expect(open().write(commitSummary, late)).rejects.toMatchObject({ code: 'stale_epoch' });
    expect(await shown(scene)).toEqual(before);
  });

  it('ends a run that was started only to create the summary, in the same commit', async () => {
    const scene = await aConversation();
    const end = {
      ...({ endReason: 'natural', detail: undefined, outcome: 'answered', preview: undefined } as const),
      parts: [{ route: routeFor(scene.run), content: { kind: 'text', text: { text: 'Done.', spans: [] } } }],
    };
    const parts = end.parts.map((part) => ({ ...part, purpose: 'notice' as const })) as never;
    const stored = await open().write(
      commitSummary,
      input(scene, { end: { ...end, parts, mayKeepLane: true } }),
    );
    expect(stored).toMatchObject({ kind: 'ended', next: { kind: 'idle' } });
    expect(await scene.worker.claim(scene.run.laneKey)).toEqual({ kind: 'idle' });
  });

  it('shows a forked sub-agent the summary of its parent even after the next one', async () => {
    const scene = await aConversation();
    const summary = input(scene);
    await open().write(commitSummary, summary);
    const fork = { sessionId: scene.sessionId, summaryMessageId: summary.id, keptFrom: 5, position: 7 };
    await open().write(commitSummary, input(scene, { keptFrom: 7 }));
    const read = await open().read(readForkedHistory, fork);
    expect(read.map(({ parts }) => textOf(parts))).toEqual(['the story so far', 'three', 'three heard']);
  });
});
