import { expect, it } from 'vitest';
import type { SendResult } from '../../../src/contracts/outbound.ts';
import { aConversation } from '../a-conversation.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('the attempts of a part', (open, beside) => {
  const triesAfter = async (result: SendResult) => {
    const { conversationKey, begin, answer, claimPart, record } = aConversation(open());
    await answer(await begin(), 'hello');
    const next = await record(await claimPart(), result, true);
    if (next.kind === 'part') return next.attempts;
    await beside.sql(`update outbox set "dueAt" = 0 where "conversationKey" = '${conversationKey}'`);
    return (await claimPart()).attempts;
  };

  it('uses up an attempt when the platform refuses a part', async () => {
    expect(await triesAfter({ kind: 'retry', afterMs: 0, reason: 'busy' })).toBe(2);
  });

  it('uses up no attempt during an outage', async () => {
    expect(await triesAfter({ kind: 'retry', afterMs: 0, reason: 'no route', isOutage: true })).toBe(1);
  });

  it("uses up no attempt while the bot's token is invalid", async () => {
    const failure = { kind: 'unauthorised' } as const;
    expect(await triesAfter({ kind: 'failed', failure, reason: 'Unauthorized' })).toBe(1);
  });
});
