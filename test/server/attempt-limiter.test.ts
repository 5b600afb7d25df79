import { describe, expect, it } from 'vitest';
import { createAttemptLimiter, defaultAttemptLimits } from '../../src/server/attempt-limiter.ts';
import { createIdentityCheck } from '../../src/server/identity.ts';
import { sourceOf } from '../../src/server/request-guard.ts';

const token = 'q7Zr2mXk9vTb4NwLs8Jd1HfG';
const noLockouts = { find: async () => undefined, record: async () => undefined };

function nearMiss(index: number): string {
  const at = index % token.length;
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
}

describe('the limiter of wrong tokens', () => {
  it('accepts none of a hundred thousand wrong tokens, but the right one at any time', async () => {
    let now = 1_000_000;
    const limiter = createAttemptLimiter({
      clock: { now: () => now, wait: async () => undefined },
      lockouts: noLockouts,
    });
    const signIns = { find: async () => ({ kind: 'nobody' }) as const };
    const tokens = { find: async () => ({ kind: 'none' }) as const };
    const identities = createIdentityCheck({ token, limiter, signIns, tokens });
    const kinds = new Map<string, number>();
    const identify = (value: string, source: string) =>
      identities.identify({ authorization: `Bearer ${value}`, cookie: undefined, source });
    for (let i = 0; i < 100_000; i++) {
      if (i % 100 === 0) now += 1_000;
      const { kind } = await identify(nearMiss(i), `10.0.0.${i % 50}`);
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      if (i % 5_000 === 0) expect(await identify(token, `10.0.0.${i % 50}`)).toEqual({ kind: 'bearer' });
    }
    expect([...kinds.keys()].sort()).toEqual(['limited', 'wrong']);
  });

  it('remembers a bounded number of addresses and reads each lockout once', async () => {
    let asked = 0;
    const limiter = createAttemptLimiter(
      {
        clock: { now: () => 0, wait: async () => undefined },
        lockouts: {
          find: async () => {
            asked++;
            return undefined;
          },
          record: async () => undefined,
        },
      },
      { ...defaultAttemptLimits, maxSources: 100 },
    );
    const tryFrom = (source: string) => limiter.attempt(source, () => false);
    await Promise.all(Array.from({ length: 9 }, () => tryFrom('a')));
    expect(asked).toBe(1);
    for (let i = 0; i < 200; i++) await tryFrom(`s${i}`);
    // The first address was forgotten, so its row is read again.
    await tryFrom('a');
    expect(asked).toBe(202);
  });

  it('applies a lockout that another process started', async () => {
    const limiter = createAttemptLimiter({
      clock: { now: () => 1_000, wait: async () => undefined },
      lockouts: {
        find: async (source) => (source === 'a' ? 41_000 : undefined),
        record: async () => undefined,
      },
    });
    expect(await limiter.attempt('a', () => false)).toEqual({ kind: 'limited', retryAfterMs: 40_000 });
    expect(await limiter.attempt('a', () => true)).toEqual({ kind: 'right' });
    expect(await limiter.attempt('b', () => false)).toEqual({ kind: 'wrong' });
  });
});

describe('the source of an attempt', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::ffff:c000:207', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['unknown', '198.51.100.1'],
    ['203.0.113.5:4711', '198.51.100.1'],
    ['', '198.51.100.1'],
  ])('counts an attempt from %j against %j', (address, source) => {
    expect(sourceOf(address, '198.51.100.1')).toBe(source);
  });
});
