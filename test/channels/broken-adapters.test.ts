/**
 * The contract is only worth something if it fails on adapters that are wrong. The sound adapter that they are made of
 * passes in example/contract.test.ts.
 */
import { describe, expect, it } from 'vitest';
import { channelChecks } from './channel-contract.ts';
import { tryCheck } from './contract/check.ts';
import { brokenAdapters } from './example/broken-adapters.ts';
import { anExampleNetwork } from './example/example-setup.ts';

/**
 * A broken adapter makes the check wait for something that never comes, while a sound one finishes long before. If
 * something that must not happen does happen, the check stops watching.
 */
const times = { patienceMs: 600, watchMs: 20_000 };

describe('a broken adapter', () => {
  it.each(brokenAdapters)('notices the broken adapter: $name', async ({ receive, breakage, caughtBy }) => {
    expect(caughtBy).not.toEqual([]);
    for (const name of caughtBy) {
      const check = channelChecks.find((known) => known.name === name);
      if (check === undefined) throw new Error(`there is no check named "${name}"`);
      const verdict = await tryCheck(check, () => anExampleNetwork(receive, breakage), times);
      expect(verdict.kind, name).toBe('broken');
    }
  });

  it('has a broken adapter for every rule of the contract', () => {
    const broken = new Set(brokenAdapters.flatMap(({ caughtBy }) => caughtBy));
    expect(channelChecks.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
  });
});
