/** Limits go by when a server received a message; the sender's clock is only displayed, as far as possible. */

import { describe, expect, it } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import { withSaneTimes } from '../../src/inbound/intake.ts';
import { createRateLimit } from '../../src/inbound/rate-limit.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { openOwnStore } from '../support/own-store.ts';
import { anAccount, anEnvelope, createIntakeFixture, type Scene } from './support/intake-fixture.ts';

const perSenderPerMinute = 10;
const hour = 3_600_000;
const now = Date.UTC(2026, 10, 22, 12);
/** Stopped, so that no limit frees up again while the test runs. */
const clock: Clock = { ...systemClock, now: () => now };

const store = openOwnStore();

/** Counts how many of the messages are accepted. */
async function takenOf(scenes: readonly Partial<Scene>[], account = anAccount('alpha')): Promise<number> {
  const town = createIntakeFixture(store(), { clock, config: { rateLimit: { perSenderPerMinute } } });
  let taken = 0;
  for (const scene of scenes) if ((await town.send(account, 'hi', scene)).kind === 'accepted') taken += 1;
  return taken;
}

const times = (count: number, scene: (index: number) => Partial<Scene>) =>
  Array.from({ length: count }, (_, index) => scene(index));

describe('a flood', () => {
  it.each([
    ['a day apart', (index: number) => now - index * 24 * hour],
    ['later and later', (index: number) => now + index * hour],
    ['back and forth', (index: number) => (index % 2) * now],
    ['at an invalid time', () => Number.NaN],
    ['before the calendar begins', () => -8.64e15],
  ])('limits a flood even if its messages claim that they were sent %s', async (_, sentAt) => {
    expect(await takenOf(times(40, (index) => ({ sentAt: sentAt(index) })))).toBe(perSenderPerMinute);
  });

  it('limits talk among people in a group silently, and counts it separately', async () => {
    const town = createIntakeFixture(store(), { clock, config: { rateLimit: { perSenderPerMinute: 2 } } });
    const ann = anAccount('alpha');
    const group = `-${ann.peer}`;
    const says = async (mentionsBot: boolean) => {
      const { kind } = await town.send(ann, 'hi', { group, mentionsBot });
      return kind;
    };
    const among = [await says(false), await says(false), await says(false)];
    expect(among).toEqual(['ignored', 'ignored', 'refused']);
    expect([await says(true), await says(true), await says(true)]).toEqual([
      'accepted',
      'accepted',
      'refused',
    ]);
    expect(await town.said({ channel: 'alpha', peer: group })).toEqual([
      expect.stringMatching(/^That’s too many messages at once/),
    ]);
  });

  it('limits a flood whatever the server says about its receipt', async () => {
    const odd = [-1, 0, Number.NaN, 1e300, now + hour, undefined];
    const scenes = times(40, (index) => ({ receivedAt: odd[index % odd.length] }));
    // Anything older than a day counts as a day old, which has a count of its own.
    expect(await takenOf(scenes)).toBeLessThanOrEqual(2 * perSenderPerMinute);
  });
});

it('accepts the backlog from while Parley was away, conversation by conversation', async () => {
  const began = now - 5 * hour;
  const spread = (index: number) => began + index * 60_000;
  const inGroup = (group: string) =>
    times(30, (index) => ({ group, mentionsBot: true, sentAt: 0, receivedAt: spread(index) }));
  const account = anAccount('alpha');
  // The current message comes first; then the history of two groups is read.
  expect(await takenOf([{}, ...inGroup('-1'), ...inGroup('-2')], account)).toBe(61);
});

it('counts only time that moves forward', () => {
  const limit = createRateLimit({ perMinute: 10 });
  const verdicts = times(100, () => ({})).map((_, index) => limit.take('a', (index % 2) * hour).kind);
  expect(verdicts.filter((kind) => kind === 'within').length).toBeLessThanOrEqual(20);
});

it.each([0, -1, Number.NaN, 8.64e15, 1e300, now + 24 * hour])(
  'shows a message dated %s by its sender as sent now',
  async (sentAt) => {
    const account = anAccount('alpha');
    const town = createIntakeFixture(store(), { clock });
    const accepted = await town.send(account, 'what time is it?', { sentAt, group: '-9', mentionsBot: true });
    expect(accepted.kind).toBe('accepted');
    const stored = await store().read(contentsOf, { sender: account.peer });
    expect(stored).toHaveLength(1);
    expect(stored[0]?.sentAt).toBe(now);
    expect(stored[0]?.prompt).toContain('2026');
  },
);

it('accepts a clock that is slightly ahead, and the age of a backlog', () => {
  const envelope = anEnvelope(anAccount('alpha'), 'hi', { sentAt: now + 5000, receivedAt: now - 23 * hour });
  expect(withSaneTimes(envelope, now)).toMatchObject({ sentAt: now + 5000, receivedAt: now - 23 * hour });
});

const contentsOf: StoreQuery<
  { readonly sender: string },
  readonly { readonly sentAt: number; readonly prompt: string }[]
> = {
  query: 'contentsOf',
  run: async (tx, { sender }) => {
    const rows = await tx.db.selectFrom('inbox').select('content').where('senderId', '=', sender).execute();
    return rows.map((row) => json.content(row.content));
  },
};
