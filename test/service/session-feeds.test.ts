import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
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
});
