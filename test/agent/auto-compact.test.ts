import { describe, expect, it } from 'vitest';
import { autoCompact } from '../../src/agent/auto-compact.ts';
import { contextLimits } from '../../src/agent/compaction-cut.ts';
import type { AgentMessage } from '../../src/contracts/message.ts';
import { userSays } from './support/builders.ts';

const answered = (count: number, words: number): readonly AgentMessage[] =>
  Array.from({ length: count }, (_, index): AgentMessage => {
    const said = userSays(String(index), 'word '.repeat(words));
    const finish = { type: 'finish', data: { reason: 'end_turn', time: 1 } } as const;
    return index % 2 === 0 ? said : { ...said, role: 'assistant', parts: [...said.parts, finish] };
  });

describe('automatic compaction', () => {
  /** What it decides before turns of contexts of so many tokens, by the provider's count. */
  const decide = async (sizes: readonly number[], messages = answered(20, 300)) => {
    const stuck: number[] = [];
    const middleware = autoCompact({ limits: contextLimits(8_000) }, (tokens) => stuck.push(tokens));
    const kinds: (string | undefined)[] = [];
    for (const [turn, contextTokens] of sizes.entries())
      kinds.push((await middleware.beforeTurn?.({ turn, messages, stats: { contextTokens } }))?.kind);
    return { kinds, stuck };
  };

  it('is due once for each crossing of the threshold', async () => {
    const { kinds } = await decide([6_000, 6_001, 7_000, 5_000, 6_500]);
    expect(kinds).toEqual(['continue', 'compact', 'continue', 'continue', 'compact']);
  });

  it('is due for a context of many short messages, however few tokens they take', async () => {
    expect((await decide([100], answered(600, 1))).kinds).toEqual(['continue']);
    expect((await decide([100, 100], answered(602, 1))).kinds).toEqual(['compact', 'continue']);
  });

  it('is not begun when too much is unread, and says so', async () => {
    const unread = answered(20, 300).map((message) => ({ ...message, role: 'user' as const }));
    expect(await decide([9_000, 9_000], unread)).toEqual({ kinds: ['continue', 'continue'], stuck: [9_000] });
  });
});
