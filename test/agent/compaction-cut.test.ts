import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pairCalls } from '../../src/agent/call-pairs.ts';
import { type ContextLimits, contextLimits, cutOf, planCompaction } from '../../src/agent/compaction-cut.ts';
import { requestOf } from '../../src/agent/convert.ts';
import { estimateTokens } from '../../src/agent/fit-context.ts';
import { transcriptId } from '../../src/contracts/ids.ts';
import type { AgentMessage, FinishReason, MessagePart } from '../../src/contracts/message.ts';
import { holds } from '../support/holds.ts';
import { llmErrors } from './support/llm-grammar.ts';

type Step =
  | { readonly kind: 'says'; readonly role: 'user' | 'system'; readonly words: number }
  | {
      readonly kind: 'answers';
      readonly words: number;
      /** The ids of its calls, each with the words of its result, or undefined if no result ever came. */
      readonly calls: readonly (readonly [string, number | undefined])[];
      readonly finish: FinishReason;
      /** Whether a steer was taken between its calls and their results. */
      readonly isSteered: boolean;
    };

const words = fc.integer({ min: 0, max: 60 });
const call = fc.tuple(
  fc.constantFrom('a', 'b', 'c', 'call_1'),
  fc.option(words, { nil: undefined, freq: 8 }),
);
const finishes = fc.constantFrom<FinishReason>('tool_use', 'tool_use', 'canceled', 'interrupted');
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('says' as const),
      role: fc.constantFrom('user' as const, 'system'),
      words,
    }),
    fc.record({
      kind: fc.constant('answers' as const),
      words,
      calls: fc.uniqueArray(call, { selector: ([id]) => id, maxLength: 3 }),
      finish: finishes,
      isSteered: fc.boolean(),
    }),
  ),
  { minLength: 1, maxLength: 30 },
);

/** Returns a transcript in the store's order: results directly after their calls. */
function historyOf(made: readonly Step[]): readonly AgentMessage[] {
  const messages: AgentMessage[] = [];
  const add = (role: AgentMessage['role'], parts: readonly MessagePart[]) =>
    messages.push({ id: transcriptId(String(messages.length)), role, parts, createdAt: 1 });
  const text = (count: number): MessagePart => ({ type: 'text', data: { text: 'word '.repeat(count + 1) } });
  for (const step of made) {
    if (step.kind === 'says') {
      add(step.role, [text(step.words)]);
      continue;
    }
    const calls = step.calls.map(
      ([id]): MessagePart => ({ type: 'tool_call', data: { id, name: 'look', input: '{}', finished: true } }),
    );
    add('assistant', [
      text(step.words),
      ...calls,
      { type: 'finish', data: { reason: step.finish, time: 1 } },
    ]);
    for (const [id, length] of step.calls) {
      if (length === undefined) continue;
      const content = 'found '.repeat(length);
      add('tool', [
        { type: 'tool_result', data: { tool_call_id: id, name: 'look', content, is_error: false } },
      ]);
    }
    if (step.isSteered) add('user', [text(1)]);
  }
  return messages;
}

const runs = { numRuns: 2_000, interruptAfterTimeLimit: 1_500 };

describe('the cut of a compaction', () => {
  it('never separates a call from its results', () => {
    holds(
      fc.property(steps, fc.integer({ min: 0, max: 600 }), (made, keep) => {
        const messages = historyOf(made);
        const index = cutOf(messages, keep);
        if (index === undefined) return;
        const [old, kept] = [messages.slice(0, index), messages.slice(index)];
        const contents = (part: readonly AgentMessage[]) =>
          pairCalls(part)
            .flat()
            .map(({ call: of, content }) => [of, content]);
        expect([...contents(old), ...contents(kept)]).toEqual(contents(messages));
        expect(llmErrors(requestOf(kept))).toEqual([]);
      }),
      runs,
    );
  });

  it('keeps everything that the model has not answered, and cuts something before it', () => {
    holds(
      fc.property(steps, fc.integer({ min: 0, max: 600 }), (made, keep) => {
        const messages = historyOf(made);
        const index = cutOf(messages, keep);
        if (index === undefined) return;
        expect(index).toBeGreaterThan(0);
        const read = messages.slice(0, index).map(({ id }) => id);
        const answered = messages.findLastIndex(
          ({ role, parts }) =>
            role === 'assistant' &&
            parts.every((part) => part.type !== 'finish' || part.data.reason !== 'interrupted'),
        );
        const isUnread = messages.slice(answered + 1).some(({ id }) => read.includes(id));
        expect(isUnread).toBe(false);
      }),
      runs,
    );
  });

  it("keeps no more than requested if possible, and starts with a person's message", () => {
    const turn = (name: string): readonly Step[] => [
      { kind: 'says', role: 'user', words: 40 },
      { kind: 'answers', words: 10, calls: [[name, 50]], finish: 'tool_use', isSteered: false },
      { kind: 'answers', words: 20, calls: [], finish: 'end_turn', isSteered: false },
    ];
    const messages = historyOf([...turn('a'), ...turn('b'), ...turn('c')]);
    const index = cutOf(messages, 500) ?? expect.fail('nothing is cut');
    expect([messages[index]?.role, index]).toEqual(['user', 4]);
    expect(estimateTokens(messages.slice(index))).toBeLessThanOrEqual(500);
    // A single long turn is cut between its batches of calls.
    const long = historyOf([...turn('a'), ...Array.from({ length: 9 }, () => turn('b').slice(1, 2)).flat()]);
    const inside = cutOf(long, 300) ?? expect.fail('nothing is cut');
    expect(long[inside]?.role).toBe('assistant');
  });

  it('frees 30 % and gets below the threshold, or plans nothing', () => {
    const limits: fc.Arbitrary<ContextLimits> = fc.integer({ min: 1_000, max: 8_000 }).map(contextLimits);
    let planned = 0;
    holds(
      fc.property(fc.array(steps, { maxLength: 4 }), limits, (made, of) => {
        const messages = historyOf(made.flat());
        const plan = planCompaction(messages, undefined, of);
        if (plan === undefined) return;
        planned += 1;
        const newTokens = plan.summaryTokens + estimateTokens(messages.slice(plan.index));
        expect(newTokens).toBeLessThanOrEqual(0.7 * estimateTokens(messages));
        expect(newTokens).toBeLessThanOrEqual(of.threshold);
      }),
      runs,
    );
    expect(planned).toBeGreaterThan(0);
  });

  it.each([
    [1_000_000, 200_000, 20_000],
    [200_000, 180_000, 20_000],
    [8_000, 6_000, 1_800],
  ])('compacts a window of %i tokens at %i and keeps %i', (window, threshold, tail) => {
    expect(contextLimits(window)).toMatchObject({ threshold, tail });
  });
});
