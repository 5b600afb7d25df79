import { expect, it } from 'vitest';
import type { SendResult } from '../../../src/contracts/outbound.ts';
import { aConversation } from '../a-conversation.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('a part that is to be repeated', (open, beside) => {
  const triesAfter = async (result: SendResult) => {
    const { conversationKey, begin, answer, claimPart, record } = aConversation(open());
    await answer(await begin(), 'hello');
    const next = await record(await claimPart(), result, true);
    if (next.kind === 'part') return next.attempts;
    await beside.sql(`update outbox set "dueAt" = 0 where "conversationKey" = '${conversationKey}'`);
    return (await claimPart()).attempts;
  };

  it('has one try less left after a refusal', async () => {
    expect(await triesAfter({ kind: 'retry', afterMs: 0, reason: 'busy' })).toBe(2);
  });

  it('has all its attempts left after an outage', async () => {
    expect(await triesAfter({ kind: 'retry', afterMs: 0, reason: 'no route', isOutage: true })).toBe(1);
  });

  it('has all its attempts left when the bot’s token is in order again', async () => {
    const failure = { kind: 'unauthorised' } as const;
    expect(await triesAfter({ kind: 'failed', failure, reason: 'Unauthorized' })).toBe(1);
  });
});
