/** What gives way when the cap is reached, set at each level: always with a notice, and recorded. */
import { expect, it } from 'vitest';
import { type DropPolicy, dropPolicies, type QueueSettings } from '../../src/contracts/queue-settings.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { anAccount, createIntakeFixture } from './support/intake-fixture.ts';

type Level = 'session' | 'conversation' | 'channel' | 'global';
const levels: readonly Level[] = ['session', 'conversation', 'channel', 'global'];

/** Returns settings where this level has `drop` and the levels below it have another policy. */
function queueWith(level: Level, drop: DropPolicy, { channel, peer }: ReturnType<typeof anAccount>) {
  const other = dropPolicies.find((policy) => policy !== drop) ?? drop;
  const below = levels.slice(levels.indexOf(level) + 1);
  const at = (one: Level): Partial<QueueSettings> =>
    one === level ? { drop } : below.includes(one) ? { drop: other } : {};
  const base = { mode: 'followup', debounceMs: 0, quietMs: 0, cap: 1, drop: other } as const;
  return {
    dm: { ...base, ...at('global') },
    group: base,
    channels: { [channel]: at('channel') },
    conversations: { [`${channel}:${peer}`]: at('conversation') },
  };
}

const expected = {
  summarize: {
    kind: 'accepted',
    outcomes: ['null null', 'merged summarized', 'null null'],
    notice: /^Many messages are waiting/,
  },
  old: {
    kind: 'accepted',
    outcomes: ['null null', 'refused queue-full', 'null null'],
    notice: /^Too many messages are waiting, so I dropped your oldest: “two”/,
  },
  new: { kind: 'refused', outcomes: ['null null', 'null null'], notice: /so I didn’t take this message/ },
} as const;

describeEachDatabase('a full lane', (open, beside) => {
  it.each(levels.flatMap((level) => dropPolicies.map((drop) => ({ level, drop }))))(
    'drops by “$drop” if the $level setting says so',
    async ({ level, drop }) => {
      const ann = anAccount('alpha');
      const town = createIntakeFixture(open(), { config: { queue: queueWith(level, drop, ann) } });
      const laneKey = town.laneOf(await town.send(ann, 'one'));
      await town.worker.claimRun(laneKey);
      if (level === 'session') await town.send(ann, `/queue drop:${drop}`);
      await town.send(ann, 'two');
      const { kind, outcomes, notice } = expected[drop];
      expect((await town.send(ann, 'three')).kind).toBe(kind);
      const { inbox } = await readLane(open(), laneKey);
      expect(inbox.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual(outcomes);
      expect((await town.said(ann)).at(-1)).toMatch(notice);
    },
  );

  it('keeps at most 200 summary lines, and drops the message of the oldest', async () => {
    const ann = anAccount('alpha');
    const town = createIntakeFixture(open(), { config: { queue: queueWith('global', 'summarize', ann) } });
    const laneKey = town.laneOf(await town.send(ann, 'one'));
    await town.worker.claimRun(laneKey);
    for (const text of ['two', 'three']) await town.send(ann, text);
    const others = Array.from({ length: 199 }, (_, n) => `,{"inboxId":"none","seq":${n},"line":"more"}`).join(
      '',
    );
    await beside.sql(
      `update lanes set overflow = replace(overflow, ']', '${others}]') where key = '${laneKey}'`,
    );
    await town.send(ann, 'four');
    const { inbox } = await readLane(open(), laneKey);
    expect(inbox.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual([
      ...['null null', 'refused queue-full', 'merged summarized', 'null null'],
    ]);
    expect((await town.said(ann)).at(-1)).toMatch(/I dropped your oldest: “two”/);
  });
});
