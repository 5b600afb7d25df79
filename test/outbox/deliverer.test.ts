import { describe, expect, it } from 'vitest';
import { settledOf } from '../../src/outbox/deliverer.ts';

const backoff = { tries: 3, minBackoffMs: 500, maxBackoffMs: 30_000 };
const retry = { kind: 'retry', afterMs: 0, reason: 'busy' } as const;

describe('a send that may be repeated', () => {
  it('waits from half a second to half a minute, three times, and is then given up', () => {
    const waits = [1, 2, 3].map((tries) => settledOf(retry, tries, backoff));
    expect(waits.map((settled) => settled.kind === 'retry' && settled.afterMs)).toEqual([500, 3873, 30_000]);
    expect(settledOf(retry, 4, backoff)).toEqual({ kind: 'exhausted', reason: 'busy' });
  });

  it('waits as long as the platform says', () => {
    expect(settledOf({ ...retry, afterMs: 490_000 }, 9, backoff)).toEqual({ ...retry, afterMs: 490_000 });
  });

  it('is tried again soon and without end while the platform cannot be reached at all', () => {
    for (const tries of [1, 4, 1000]) {
      const settled = settledOf({ ...retry, isOutage: true }, tries, backoff);
      expect(settled.kind === 'retry' && settled.afterMs).toBe(3000);
    }
  });
});
