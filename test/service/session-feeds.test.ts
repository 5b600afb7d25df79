import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { holds } from '../support/holds.ts';
import { openOwnStore } from '../support/own-store.ts';
import { type Fate, FeedStage, storedPartOf } from './feed-stage.ts';

const fates = ['heard', 'lost', 'twice'] as const satisfies readonly Fate[];
const commits = ['ask', 'begin', 'write', 'answer', 'stop'] as const;
const moves = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constantFrom(...commits), fate: fc.constantFrom(...fates) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('join' as const) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom('leave' as const, 'stall' as const, 'go on' as const, 'reconnect' as const),
        who: fc.nat(5),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constantFrom('kill' as const, 'burst' as const, 'wait' as const) }),
    },
  ),
  { minLength: 5, maxLength: 40 },
);
type Move = typeof moves extends fc.Arbitrary<readonly (infer One)[]> ? One : never;

async function play(stage: FeedStage, move: Move): Promise<void> {
  switch (move.kind) {
    case 'ask':
      return stage.ask(move.fate);
    case 'begin':
      return void (await stage.begin(move.fate));
    case 'write':
      return stage.write('words and ', move.fate);
    case 'answer':
    case 'stop':
      return stage.end(move.kind, move.fate);
    case 'join':
      return void stage.join();
    case 'kill':
      return stage.kill();
    case 'wait':
      return stage.settle();
    case 'burst':
      for (let count = 0; count < 150; count += 1)
        stage.tell({ kind: 'cost', sessionId: 's', messageId: `m${count}`, cost: 1 });
      return;
    default: {
      const reader = stage.readers[move.who % Math.max(1, stage.readers.length)];
      if (!reader) return;
      if (move.kind === 'leave') reader.leave();
      else if (move.kind === 'reconnect') reader.reconnect();
      else reader.isStalled = move.kind === 'stall';
    }
  }
}

describe('the feeds of a session', () => {
  const store = openOwnStore();

  it('gives every reader what is stored, and each end of a run once, however they come, lag and go', async () => {
    await holds(
      fc.asyncProperty(moves, async (sequence) => {
        const stage = new FeedStage(store());
        try {
          stage.join();
          for (const move of sequence) await play(stage, move);
          await stage.settle();
          for (const reader of stage.readers) reader.reconnect();
          const fresh = stage.join();
          await stage.settle();
          expect(fresh.conversation.preview?.text ?? '').toBe(stage.openText);
          for (const reader of stage.readers) {
            expect(storedPartOf(reader.conversation)).toEqual(storedPartOf(fresh.conversation));
            expect(reader.ends).toEqual(await stage.ends(reader.joinedAfter));
          }
        } finally {
          stage.close();
        }
      }),
      { interruptAfterTimeLimit: 12_000, numRuns: 2_000 },
    );
  });

  it('gives a reader that falls behind a snapshot instead of a backlog, and no end twice', async () => {
    const stage = new FeedStage(store());
    onTestFinished(() => stage.close());
    const reader = stage.join();
    await startRun(stage);
    await stage.settle();
    await stage.end('answer');
    await stage.settle();
    reader.isStalled = true;
    const before = reader.frames.length;
    for (let count = 0; count < 40; count += 1) {
      for (let event = 0; event < 10; event += 1)
        stage.tell({ kind: 'cost', sessionId: 's', messageId: `m${count}.${event}`, cost: 1 });
      await turn();
    }
    await startRun(stage);
    await stage.end('stop');
    await stage.settle();
    expect(reader.frames.length - before).toBeLessThan(200);
    expect(reader.frames.slice(before).some(({ type }) => type === 'snapshot')).toBe(true);
    expect(reader.ends).toEqual(await stage.ends());
  });

  it('tells a reader of one run its end, and nothing of other runs', async () => {
    const stage = new FeedStage(store());
    onTestFinished(() => stage.close());
    const run = await startRun(stage);
    const reader = stage.join({ run });
    await stage.settle();
    stage.tell({ kind: 'text', runId: 'another', of: 'chat', at: 0, text: 'secret' });
    stage.tell({ kind: 'run', runId: 'another', state: 'ended' });
    stage.write('words');
    await stage.settle();
    await stage.end('answer');
    await startRun(stage);
    await stage.settle();
    expect(reader.ends).toEqual([run]);
    expect(reader.isOver).toBe(true);
    const runs = reader.frames.flatMap((frame) =>
      frame.type === 'event' && 'runId' in frame.event ? [frame.event.runId] : [],
    );
    expect(new Set(runs)).toEqual(new Set([run]));
    expect(reader.frames.flatMap((frame) => (frame.type === 'items' ? frame.items : []))).toEqual([]);
  });

  it('tells a reader of one session nothing of another', async () => {
    const [stage, other] = [new FeedStage(store()), new FeedStage(store())];
    onTestFinished(() => stage.close());
    onTestFinished(() => other.close());
    await startRun(stage);
    await other.ask();
    stage.join();
    await stage.settle();
    const over = new AbortController();
    const feed = stage.feeds.open({ laneKey: other.laneKey }, over.signal);
    const frames: unknown[] = [];
    const reading = (async () => {
      for await (const batch of feed ?? []) frames.push(...batch.map(({ frame }) => frame));
    })();
    stage.write('secret');
    await stage.settle();
    await stage.end('stop');
    await stage.settle();
    over.abort();
    await reading;
    expect(frames).toEqual([expect.objectContaining({ type: 'snapshot', of: other.laneKey })]);
    expect(frames).toEqual([
      expect.objectContaining({ items: [expect.objectContaining({ state: 'waiting' })] }),
    ]);
  });
});

async function startRun(stage: FeedStage): Promise<string> {
  await stage.ask();
  return (await stage.begin())?.runId ?? '';
}
