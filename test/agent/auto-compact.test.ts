import { describe, expect, it } from 'vitest';
import { autoCompact, type StuckContext } from '../../src/agent/auto-compact.ts';
import { contextLimits } from '../../src/agent/compaction-cut.ts';
import { estimateTokens, fitContext } from '../../src/agent/fit-context.ts';
import { agentLoop } from '../../src/agent/loop.ts';
import type { AgentMessage } from '../../src/contracts/message.ts';
import type { ModelRequest } from '../../src/contracts/model.ts';
import { aConfig, aContext, userSays } from './support/builders.ts';
import { endOf, play } from './support/run-loop.ts';
import { scriptedModel, someUsage } from './support/scripted-model.ts';

const answered = (count: number, words: number): readonly AgentMessage[] =>
  Array.from({ length: count }, (_, index): AgentMessage => {
    const said = userSays(String(index), 'word '.repeat(words));
    const finish = { type: 'finish', data: { reason: 'end_turn', time: 1 } } as const;
    return index % 2 === 0 ? said : { ...said, role: 'assistant', parts: [...said.parts, finish] };
  });

describe('automatic compaction', () => {
  /** Returns its decisions before turns whose contexts have these token counts, as the provider counts them. */
  const decide = async (sizes: readonly number[], messages = answered(20, 300)) => {
    const stuck: StuckContext[] = [];
    const middleware = autoCompact({ limits: contextLimits(8_000) }, (each) => stuck.push(each));
    const kinds: (string | undefined)[] = [];
    for (const [turn, contextTokens] of sizes.entries())
      kinds.push(
        (await middleware.beforeTurn?.({ turn, messages, stats: { contextTokens, cost: 0 } }))?.kind,
      );
    return { kinds, stuck };
  };

  it('compacts once for each crossing of the threshold', async () => {
    const { kinds } = await decide([6_000, 6_001, 7_000, 5_000, 6_500]);
    expect(kinds).toEqual(['continue', 'compact', 'continue', 'continue', 'compact']);
  });

  it('compacts a context of many short messages, however few tokens they take', async () => {
    expect((await decide([100], answered(600, 1))).kinds).toEqual(['continue']);
    expect((await decide([100, 100], answered(602, 1))).kinds).toEqual(['compact', 'continue']);
  });

  it('compacts before a request leaves anything out, however many characters make a token', async () => {
    const window = 200_000;
    const text = 'word '.repeat(1600);
    const summary: AgentMessage = { ...userSays('sum', 'Anna wants a boat.'), isSummary: true };
    const counted = ({ messages }: ModelRequest) => Math.ceil(JSON.stringify(messages).length / 4.3);
    const answer = async function* (request: ModelRequest) {
      const usage = { ...someUsage, inputTokens: counted(request), outputTokens: 1_870 };
      yield { type: 'content_delta', text } as const;
      yield { type: 'complete', finish: 'end_turn', usage, cost: 0, model: 'scripted' } as const;
    };
    const turns = 60;
    const model = scriptedModel(...Array.from({ length: turns }, () => answer));
    let asked = 0;
    let compactedAt = 0;
    const config = aConfig({
      model,
      limits: { ...aConfig().limits, turns },
      middleware: [autoCompact({ limits: contextLimits(window) }, () => undefined)],
      transformContext: async (all, tokens) => fitContext(all, { tokens, window }),
      compact: async () => {
        compactedAt = model.requests.length;
        return 'compacted';
      },
      reloadMessages: async () => [summary, userSays('kept', text)],
      getFollowUpMessages: async () => {
        asked += 1;
        return compactedAt === 0 ? [userSays(`more ${asked}`, text)] : [];
      },
    });
    const context = aContext([], [summary]);
    const signal = new AbortController().signal;
    const { events } = await play(agentLoop([userSays('first', text)], context, config, signal));
    expect(endOf(events)).toMatchObject({ reason: 'natural' });
    const shown = model.requests.map(({ messages }) => JSON.stringify(messages));
    expect(shown.filter((request) => !request.includes('Anna wants a boat.'))).toEqual([]);
    expect(shown.filter((request) => request.includes('earlier messages of this conversation'))).toEqual([]);
    // It is due above 180,000 tokens; each turn adds about 3,750 of them, but 5,300 by the estimate.
    expect(compactedAt).toBeGreaterThan(44);
    expect(compactedAt).toBeLessThan(50);
  });

  it("doesn't compact if too much is unread, and reports it", async () => {
    const unread = answered(20, 300).map((message) => ({ ...message, role: 'user' as const }));
    const { kinds, stuck } = await decide([9_000, 9_000], unread);
    expect(kinds).toEqual(['continue', 'continue']);
    expect(stuck).toMatchObject([{ tokens: 9_000, isFixed: false }]);
  });

  it("doesn't compact if instructions and tools alone are too long", async () => {
    // The conversations that successive runs find, each above the threshold of 6,000 tokens.
    for (const messages of [answered(6, 300), answered(20, 300)]) {
      const tokens = estimateTokens(messages);
      for (const fixed of [5_900, 6_500]) {
        const { kinds, stuck } = await decide([tokens + fixed], messages);
        expect([kinds, stuck]).toMatchObject([['continue'], [{ fixedTokens: fixed, isFixed: true }]]);
      }
      expect((await decide([Math.max(6_001, tokens + 1_000)], messages)).kinds).toEqual(['compact']);
    }
  });
});
