import { describe, expect, it } from 'vitest';
import { applyBackoff } from '../../src/outbox/deliverer.ts';

const backoff = { retries: 3, minBackoffMs: 500, maxBackoffMs: 30_000 };
const retry = { kind: 'retry', afterMs: 0, reason: 'busy' } as const;

describe('a send that may be repeated', () => {
  it('retries a send three times, after half a second to half a minute, and then gives it up', () => {
    const waits = [1, 2, 3].map((attempts) => applyBackoff(retry, attempts, backoff));
    expect(waits.map((settled) => settled.kind === 'retry' && settled.afterMs)).toEqual([500, 3873, 30_000]);
    expect(applyBackoff(retry, 4, backoff)).toEqual({ kind: 'exhausted', reason: 'busy' });
  });

  it('waits as long as the platform says, at most five minutes, however many attempts were made', () => {
    const waitOf = (afterMs: number) => applyBackoff({ ...retry, afterMs }, 9, backoff);
    expect(waitOf(90_000)).toEqual({ ...retry, afterMs: 90_000, askedMs: 90_000 });
    expect(waitOf(490_000)).toEqual({ ...retry, afterMs: 300_000, askedMs: 490_000 });
    expect(waitOf(86_400_000)).toMatchObject({ afterMs: 300_000, askedMs: 86_400_000 });
  });

  it('retries after at least a second and at most five minutes, whatever number the platform sends', () => {
    for (const afterMs of [1e-9, 0.5, 3, 3e9, 2 ** 31, 1e300, Number.MAX_VALUE, Infinity]) {
      const settled = applyBackoff({ ...retry, afterMs }, 1000, backoff);
      if (settled.kind !== 'retry') throw new Error(`${afterMs} ends the part`);
      expect(settled.afterMs).toBeGreaterThanOrEqual(1_000);
      expect(settled.afterMs).toBeLessThanOrEqual(300_000);
      expect(settled.askedMs).toBeLessThanOrEqual(30 * 86_400_000);
    }
  });

  it('uses up an attempt if the platform names no meaningful wait', () => {
    for (const afterMs of [0, -1, -1e300, -Infinity, NaN, 'soon' as unknown as number]) {
      expect(applyBackoff({ ...retry, afterMs }, 1, backoff)).toMatchObject({ kind: 'retry', afterMs: 500 });
      expect(applyBackoff({ ...retry, afterMs }, 4, backoff).kind).toBe('exhausted');
    }
  });

  it("retries soon and without end while the platform can't be reached", () => {
    for (const attempts of [1, 4, 1000]) {
      const settled = applyBackoff({ ...retry, isOutage: true }, attempts, backoff);
      expect(settled.kind === 'retry' && settled.afterMs).toBe(3000);
    }
  });

  it("shortens a platform's reason and removes characters that a database refuses", () => {
    const reason = `\u0000${'at com.example.Sender '.repeat(1_000)}`;
    for (const told of [retry, { kind: 'unknown' }] as const) {
      const settled = applyBackoff({ ...told, reason }, 4, backoff);
      expect('reason' in settled && settled.reason).toMatch(/^\ufffdat com.{400,495}$/s);
    }
  });
});
