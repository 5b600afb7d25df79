import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ResetSettings, resetBefore, resetPolicyFor } from '../../src/sessions/reset-policy.ts';
import { holds } from '../support/holds.ts';

const at = (iso: string) => Date.parse(iso);
const daily = (hour: number) => ({ dailyAtHour: hour });
type Moment = Parameters<typeof resetBefore>[0];
const isResetDue = ({ lastActivityAt, ...moment }: Moment & { readonly lastActivityAt: number }) =>
  lastActivityAt < (resetBefore(moment) ?? Number.NEGATIVE_INFINITY);
const due = (policy: Moment['policy'], last: string, now: string, timeZone = 'Europe/Berlin') =>
  isResetDue({ policy, lastActivityAt: at(last), now: at(now), timeZone });

describe('the reset policy', () => {
  it('never resets without a policy', () => {
    expect(due({}, '2020-01-01T00:00:00Z', '2030-01-01T00:00:00Z')).toBe(false);
  });

  it('resets daily at the hour of the given time zone', () => {
    expect(due(daily(4), '2026-01-10T02:30:00Z', '2026-01-10T02:59:59Z')).toBe(false);
    expect(due(daily(4), '2026-01-10T02:59:59Z', '2026-01-10T03:00:00Z')).toBe(true);
    expect(due(daily(4), '2026-01-10T03:00:00Z', '2026-01-11T02:59:00Z')).toBe(false);
    expect(due(daily(4), '2026-01-10T02:59:59Z', '2026-01-10T03:00:00Z', 'Asia/Tokyo')).toBe(false);
  });

  it('resets once on a day whose hour comes twice or never', () => {
    // Clocks go back from 03:00 to 02:00 on 2026-10-25, and skip 02:00 on 2026-03-29.
    expect(due(daily(2), '2026-10-25T00:10:00Z', '2026-10-25T01:10:00Z')).toBe(false);
    expect(due(daily(2), '2026-10-24T23:59:00Z', '2026-10-25T00:00:00Z')).toBe(true);
    expect(due(daily(2), '2026-03-29T00:59:00Z', '2026-03-29T01:00:00Z')).toBe(true);
  });

  it('resets after idle minutes', () => {
    const idle = { idleMinutes: 30 };
    expect(due(idle, '2026-01-10T10:00:00Z', '2026-01-10T10:29:59Z')).toBe(false);
    expect(due(idle, '2026-01-10T10:00:00Z', '2026-01-10T10:30:00Z')).toBe(true);
    expect(due({ ...idle, ...daily(4) }, '2026-01-10T10:00:00Z', '2026-01-10T10:30:00Z')).toBe(true);
  });

  it("doesn't reset when the clock was set back", () => {
    expect(due(daily(4), '2026-01-12T10:00:00Z', '2026-01-10T10:00:00Z')).toBe(false);
  });

  it('resets once per local day, in any zone on any date', () => {
    const zones = fc.constantFrom(
      'UTC',
      'Europe/Berlin',
      'America/New_York',
      'Asia/Kolkata',
      'Pacific/Auckland',
    );
    const start = fc.integer({ min: at('2024-01-01T00:00:00Z'), max: at('2030-01-01T00:00:00Z') });
    holds(
      fc.property(start, fc.integer({ min: 0, max: 23 }), zones, (first, hour, timeZone) => {
        const halfHour = 1_800_000;
        const resets: number[] = [];
        for (let now = first; now < first + 72 * 2 * halfHour; now += halfHour) {
          const state = { policy: daily(hour), lastActivityAt: now - halfHour, now, timeZone };
          if (isResetDue(state)) resets.push(now);
        }
        expect(resets.length).toBeGreaterThanOrEqual(2);
        // 23 h or 25 h on the days when clocks change, give or take the distance between two messages.
        for (const [index, reset] of resets.slice(1).entries()) {
          const hours = (reset - (resets[index] ?? 0)) / (2 * halfHour);
          expect(hours).toBeGreaterThanOrEqual(22.5);
          expect(hours).toBeLessThanOrEqual(25.5);
        }
      }),
      { numRuns: 1000, interruptAfterTimeLimit: 1000 },
    );
  });

  it('prefers the policy of the channel to that of the chat type', () => {
    const settings: ResetSettings = {
      dm: {},
      group: daily(2),
      thread: daily(1),
      channels: { net: daily(3) },
    };
    expect(resetPolicyFor(settings, { type: 'group', channel: 'net' })).toEqual(daily(3));
    expect(resetPolicyFor(settings, { type: 'group', channel: 'web' })).toEqual(daily(2));
    expect(resetPolicyFor(settings, { type: 'dm', channel: 'constructor' })).toEqual({});
  });
});
