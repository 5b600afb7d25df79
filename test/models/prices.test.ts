import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Usage } from '#contracts/model.ts';
import { countedUsage } from '../../src/models/openai/openai-usage.ts';
import { costOf, lookUpPrices, noUsage } from '../../src/models/prices.ts';
import { holds } from '../support/holds.ts';

const million = 1_000_000;

describe('prices', () => {
  it('knows prices for current models, with and without a date', () => {
    expect(lookUpPrices('claude-sonnet-5-5').input).toBe(2 * million);
    expect(lookUpPrices('claude-haiku-4-5-20251001').output).toBe(5 * million);
  });

  it('charges nothing for an unknown model', () => {
    expect(costOf({ ...noUsage, inputTokens: million }, lookUpPrices('llama-9'))).toBe(0);
  });
});

describe('cost', () => {
  const usage = (inputTokens: number, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0) => ({
    inputTokens,
    outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
  });

  it('adds the four prices', () => {
    const prices = lookUpPrices('claude-opus-5');
    expect(costOf(usage(1000, 1000, 1000, 1000), prices)).toBe(5000 + 25_000 + 500 + 6250);
  });

  it('charges reasoning tokens that only the total includes', () => {
    const answer = { prompt_tokens: 20, completion_tokens: 198 };
    const counted = [{ ...answer, total_tokens: 623 }, { ...answer, total_tokens: 218 }, answer].map((wire) =>
      countedUsage(wire, undefined, true),
    );
    expect(counted).toEqual([usage(20, 603), usage(20, 198), usage(20, 198)]);
  });

  it('rounds part of a micro-dollar up', () => {
    expect(costOf(usage(1), lookUpPrices('claude-haiku-5-5'))).toBe(1);
    expect(costOf(noUsage, lookUpPrices('claude-haiku-5-5'))).toBe(0);
  });

  it('charges a long call the higher price where a model has one, including cached tokens', () => {
    const prices = lookUpPrices('claude-haiku-5-5');
    expect(costOf(usage(100_000), prices)).toBe(10_000);
    expect(costOf(usage(1, 1000, 100_000), prices)).toBe(Math.ceil(0.5 + 2500 + 5000));
  });

  it('never charges more for combined calls than for separate ones', () => {
    const tokens = fc.nat(50_000);
    const arbitrary = fc.tuple(tokens, tokens, tokens, tokens).map((each) => usage(...each));
    const prices = lookUpPrices('claude-sonnet-5-5');
    const sum = (a: Usage, b: Usage) =>
      usage(
        a.inputTokens + b.inputTokens,
        a.outputTokens + b.outputTokens,
        a.cacheReadTokens + b.cacheReadTokens,
        a.cacheWriteTokens + b.cacheWriteTokens,
      );
    const property = fc.property(arbitrary, arbitrary, (a, b) => {
      const together = costOf(sum(a, b), prices);
      expect(Number.isSafeInteger(together)).toBe(true);
      expect(together).toBeLessThanOrEqual(costOf(a, prices) + costOf(b, prices));
    });
    holds(property, { numRuns: 10_000, interruptAfterTimeLimit: 500 });
  });
});
