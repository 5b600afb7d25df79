import { expect, it } from 'vitest';
import { renderTrace } from '../../../src/cli/render-trace.ts';
import { expireParts, hasExpired, readExpired } from '../../../src/store/delivery/expire-part.ts';
import { retryPart } from '../../../src/store/delivery/operator-actions.ts';
import { readOpenNotices } from '../../../src/store/delivery/queue-alert-message.ts';
import { readWhy } from '../../../src/store/reads/why/read-why.ts';
import { aConversation, aCourier } from '../a-conversation.ts';
import { describeEachDatabase } from '../each-database.ts';

const hourMs = 3_600_000;
const expireMs = { answer: 72 * hourMs, notice: 24 * hourMs, reaction: hourMs };

describeEachDatabase('an undelivered part', (open, { sql }) => {
  const anAnswer = async () => {
    const scene = aConversation(open());
    const { conversation, conversationKey, begin, answer } = scene;
    await answer(await begin('hi', { messageId: conversation }), 'hello');
    const courier = aCourier(open(), conversationKey, { expireMs });
    const hoursPass = (hours: number) =>
      sql(`update "outbox" set "createdAt" = "createdAt" - ${hours * hourMs}
        where "conversationKey" = '${conversationKey}'`);
    const why = async () => {
      const found = await open().read(readWhy, { id: conversation, withExcerpts: false });
      if (found.kind !== 'account') throw new Error(`${conversation} is ${found.kind}`);
      const { items, parts } = found.account;
      return { outcome: items[0]?.outcome, part: parts[0], story: renderTrace(found.account) };
    };
    const alerts = async () =>
      (await open().read(readOpenNotices, { limit: 100 }))
        .filter(({ subject }) => subject === conversationKey)
        .map(({ kind }) => kind);
    return { ...scene, ...courier, hoursPass, why, alerts };
  };

  it('gives up a part at its age limit, and tells owner, agent and `why`', async () => {
    const { hoursPass, claimNext, why, alerts, begin } = await anAnswer();
    await hoursPass(73);
    expect(await claimNext()).toMatchObject({ kind: 'empty' });
    const { outcome, part, story } = await why();
    expect({ outcome, state: part?.state }).toEqual({ outcome: 'failed', state: 'failed' });
    expect(story).toContain('it expired');
    expect(await alerts()).toEqual(['delivery-expired']);
    const { runId } = await begin('and now?');
    const rows = await open().read(
      {
        query: 'readPrompts',
        run: (tx, of: string) =>
          tx.db.selectFrom('transcript').select('parts').where('runId', '=', of).execute(),
      },
      runId,
    );
    expect(JSON.stringify(rows)).toContain('was not delivered: it expired');
  });

  it('delivers a part before its age limit', async () => {
    const { hoursPass, claimNext, alerts } = await anAnswer();
    await hoursPass(71);
    expect((await claimNext()).kind).toBe('part');
    expect(await alerts()).toEqual([]);
  });

  it('keeps a part that may have arrived', async () => {
    const { hoursPass, claimPart, record, claimNext, why } = await anAnswer();
    const claimed = await claimPart();
    await record(
      { ...claimed, mayHaveArrivedSince: 1 },
      {
        kind: 'retry',
        afterMs: 0,
        reason: 'cut off',
      },
    );
    await hoursPass(100);
    await claimNext();
    expect((await why()).part?.state).not.toBe('failed');
  });

  it('gives up a part that nothing delivers, and sends it at the request of the operator', async () => {
    const { conversationKey, hoursPass, why, claimNext } = await anAnswer();
    await hoursPass(73);
    expect(await open().read(readExpired, expireMs)).toContain(conversationKey);
    await open().write(expireParts, { conversationKey, limits: expireMs });
    const { part } = await why();
    expect(part?.state).toBe('failed');
    expect(await open().write(retryPart, { key: part?.key ?? '' })).toBe('done');
    expect((await claimNext()).kind).toBe('part');
  });
});

it('has an age limit for each kind of part', () => {
  const part = { key: 'k', state: 'pending', sendingAt: null, createdAt: 0 };
  const text = JSON.stringify({ kind: 'text', text: { text: 'x', spans: [] } });
  const reaction = JSON.stringify({ kind: 'reaction', messageId: '1', emoji: 'x' });
  const removal = JSON.stringify({ kind: 'delete', messageId: '1' });
  const expires = (of: { purpose: string; content: string; key?: string }, hours: number) =>
    hasExpired({ ...part, ...of }, { limits: expireMs, now: hours * hourMs });
  expect([71, 73].map((hours) => expires({ purpose: 'reply', content: text }, hours))).toEqual([false, true]);
  expect([71, 73].map((hours) => expires({ purpose: 'tool', content: text }, hours))).toEqual([false, true]);
  expect([23, 25].map((hours) => expires({ purpose: 'notice', content: text }, hours))).toEqual([
    false,
    true,
  ]);
  expect([0.5, 2].map((hours) => expires({ purpose: 'notice', content: reaction }, hours))).toEqual([
    false,
    true,
  ]);
  expect([25, 73].map((hours) => expires({ purpose: 'notice', content: removal }, hours))).toEqual([
    false,
    true,
  ]);
});
