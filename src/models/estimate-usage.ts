import type { ModelRequest, Usage } from '#contracts/model.ts';

/** Estimates usage as characters / 4: even if a server doesn't count, its context window must be respected. */
export function estimateUsage({ system, messages, tools }: ModelRequest, answerLength: number): Usage {
  return {
    inputTokens: Math.ceil(JSON.stringify([system, messages, tools]).length / 4),
    outputTokens: Math.ceil(answerLength / 4),
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  };
}
