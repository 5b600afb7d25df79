import { describe, expect, it } from 'vitest';
import { pruneResults } from '../../src/agent/fit-context.ts';
import { transcriptId } from '../../src/contracts/ids.ts';
import type { AgentMessage } from '../../src/contracts/message.ts';

const result = (index: number): AgentMessage => ({
  id: transcriptId(String(index)),
  role: 'tool',
  parts: [
    {
      type: 'tool_result',
      data: { tool_call_id: `c${index}`, name: 'read', content: 'y'.repeat(3_000), is_error: false },
    },
  ],
  createdAt: 1,
});

describe('the shortening of old tool results', () => {
  it('leaves a context unchanged that has nothing old', () => {
    const messages = Array.from({ length: 40 }, (_, index) => result(index));
    expect(pruneResults(messages)).toBe(messages);
  });

  it('shortens once per 25,000 tokens and leaves the newest 40,000 whole', () => {
    const all = Array.from({ length: 160 }, (_, index) => result(index));
    const shortenedIn = (count: number) =>
      pruneResults(all.slice(0, count)).filter((message, index) => message !== all[index]).length;
    const counts = Array.from({ length: 160 }, (_, count) => shortenedIn(count + 1));
    // Each result is about 1,000 tokens.
    expect(new Set(counts).size).toBe(1 + Math.floor((160 - 40) / 25));
    for (const [index, shortened] of counts.entries())
      expect(index + 1 - shortened).toBeGreaterThanOrEqual(Math.min(index + 1, 38));
    expect(all[0]).toEqual(result(0));
  });
});
