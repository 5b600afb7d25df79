import { expect, it } from 'vitest';
import { systemClock } from '../../../src/channel-kit/system-clock.ts';
import { renderTrace } from '../../../src/cli/render-trace.ts';
import { createMetrics } from '../../../src/server/metrics/metrics.ts';
import type { SendOutcome } from '../../../src/store/delivery/end-part.ts';
import { dropPart } from '../../../src/store/delivery/operator-actions.ts';
import { readOpenNotices } from '../../../src/store/delivery/queue-alert-message.ts';
import { readWhy } from '../../../src/store/reads/why/read-why.ts';
import { freeLoop } from '../../support/free-loop.ts';
import { aConversation } from '../a-conversation.ts';
import { describeEachDatabase } from '../each-database.ts';

const dayMs = 86_400_000;
const asked = (askedMs: number): SendOutcome => ({
  kind: 'retry',
  reason: 'too many requests',
  afterMs: Math.min(askedMs, 300_000),
  askedMs,
});
const sent: SendOutcome = { kind: 'sent', receipts: [] };

describeEachDatabase('a part that its platform asks to delay', (open, { sql, dialect }) => {
  const anAnswer = async () => {
    const { conversation, conversationKey, begin, answer, claimNext, record } = aConversation(open());
    await answer(await begin('hi', { messageId: conversation }), 'hello');
    /** Delivers what is due; if nothing is due, returns what is next. */
    const deliver = async (result: SendOutcome) => {
      const claimed = await claimNext();
      if (claimed.kind !== 'part') return claimed;
      await record(claimed, result);
      return { kind: 'tried', attempts: claimed.attempts } as const;
    };
    const why = async () => {
      const found = await open().read(readWhy, { id: conversation, withExcerpts: false });
      if (found.kind !== 'account') throw new Error(`${conversation} is ${found.kind}`);
      const { items, parts } = found.account;
      return { item: items[0], part: parts[0], story: renderTrace(found.account) };
    };
    const notices = async () =>
      (await open().read(readOpenNotices, { limit: 100 })).filter((one) => one.subject === conversationKey);
    const fiveMinutesPass = () =>
      sql(`update "outbox" set "dueAt" = "dueAt" - 300000, "waitAskedSince" = "waitAskedSince" - 300001
        where "conversationKey" = '${conversationKey}'`);
    return { conversationKey, deliver, why, notices, fiveMinutesPass };
  };

  const figures = async () => {
    const metrics = createMetrics({
      store: open(),
      clock: systemClock,
      ...freeLoop,
      isRedisReady: () => true,
    });
    const text = await metrics.metrics();
    const of = (name: string) => Number(text.match(new RegExp(`^${name} (.*)$`, 'm'))?.[1]);
    return {
      asked: of('parley_outbox_long_waits\\{cause="platform"\\}'),
      late: of('parley_outbox_long_waits\\{cause="other"\\}'),
      provisional: of('parley_messages_provisional\\{source="platform"\\}'),
      answered: of('parley_messages_ended\\{outcome="answered",source="platform"\\}'),
    };
  };

  it('retries a part every five minutes if its platform asks to wait, without using up attempts', async () => {
    const { deliver, why, notices, fiveMinutesPass } = await anAnswer();
    const before = await figures();
    for (let round = 0; round < 8; round++) {
      expect(await deliver(asked(dayMs))).toEqual({ kind: 'tried', attempts: 1 });
      const next = await deliver(sent);
      expect(next.kind === 'later' && next.delayMs).toBeLessThanOrEqual(300_000);
      await fiveMinutesPass();
    }
    const { item, part, story } = await why();
    expect(item).toMatchObject({ outcome: 'answered', isProvisional: true });
    expect(part).toMatchObject({ state: 'pending', attempts: 0, problem: 'too many requests' });
    const { since = 0, until = 0 } = part?.askedToWait ?? {};
    expect(until - since).toBeGreaterThan(dayMs);
    const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`;
    expect(story).toMatch(
      new RegExp(`; its platform has been asking for a delay since ${time}, now until ${time} \\(too many`),
    );
    expect(story).toMatch(/ended: answered \(delivery pending\) with /);
    expect(await notices()).toMatchObject([{ kind: 'delivery-waits', count: 1 }]);
    expect((await figures()).asked).toBe(before.asked + 1);

    await deliver(sent);
    expect(await notices()).toEqual([]);
    const ended = await why();
    expect(ended.item).toMatchObject({ outcome: 'answered', isProvisional: false });
    expect(ended.story).toMatch(/ended: answered with /);
    expect((await figures()).asked).toBe(before.asked);
  });

  it('raises an alert only once the requested delay has become long', async () => {
    const { deliver, notices, fiveMinutesPass } = await anAnswer();
    await deliver(asked(4_000));
    expect(await notices()).toEqual([]);
    await fiveMinutesPass();
    await deliver(asked(4_000));
    expect(await notices()).toMatchObject([
      { values: { since: expect.stringMatching(/Z$/), until: expect.stringMatching(/Z$/) } },
    ]);
  });

  it('ends the alert of a delayed part when the operator drops it', async () => {
    const { deliver, notices, why } = await anAnswer();
    await deliver(asked(dayMs));
    await open().write(dropPart, { key: (await why()).part?.key ?? '' });
    expect(await notices()).toEqual([]);
  });

  it('counts a message with a delayed part as answered until the part ends', async () => {
    const { conversationKey, deliver } = await anAnswer();
    const metrics = createMetrics({
      store: open(),
      clock: systemClock,
      ...freeLoop,
      isRedisReady: () => true,
    });
    const failed = async () =>
      Number(
        (await metrics.metrics()).match(
          /^parley_messages_ended\{outcome="failed",source="platform"\} (.*)$/m,
        )?.[1],
      );
    const before = await figures();
    expect(before.provisional).toBeGreaterThan(0);
    await sql(`update "ledger" set "at" = 1 where "conversationKey" = '${conversationKey}'`);
    const failedBefore = await failed();
    await deliver({ kind: 'failed', failure: { kind: 'rejected' }, reason: 'no' });
    const after = await figures();
    expect(after.provisional).toBe(before.provisional - 1);
    expect(after.answered).toBe(before.answered - 1);
    await expect.poll(failed).toBe(failedBefore + 1);
  });

  it('reports a delayed part whatever times are stored', async () => {
    const { conversationKey, deliver, why } = await anAnswer();
    await deliver(asked(dayMs));
    // A column can't hold what doesn't fit into a PostgreSQL bigint.
    const worst = dialect === 'sqlite' ? '1e300' : '9007199254740991';
    for (const value of [worst, '-1', '8640000000000001']) {
      const at = `where "conversationKey" = '${conversationKey}'`;
      await sql(`update "outbox" set "dueAt" = ${value}, "waitAskedSince" = ${value},
        "waitAskedUntil" = ${value}, "createdAt" = ${value} ${at}`);
      await sql(`update "inbox" set "createdAt" = ${value} ${at}`);
      expect((await why()).story).toContain('asking for a delay since');
      expect(JSON.stringify((await why()).part)).toContain('askedToWait');
    }
    expect((await deliver(sent)).kind).toBe('tried');
  });
});
