import { expect, it } from 'vitest';
import { rememberSuccess } from '../../src/channel-kit/keep-recent.ts';

it('makes a call until it succeeds, once for all concurrent callers, and never again', async () => {
  let calls = 0;
  const ask = rememberSuccess(async () => {
    calls += 1;
    if (calls === 1) throw new Error('too many open files');
    return calls;
  });
  const failed = await Promise.allSettled([ask(), ask()]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await Promise.all([ask(), ask()])).toEqual([2, 2]);
  expect([await ask(), calls]).toEqual([2, 2]);
});
