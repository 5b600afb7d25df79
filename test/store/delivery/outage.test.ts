import { expect, it } from 'vitest';
import type { SendResult } from '../../../src/contracts/outbound.ts';
import { conversationKeyOf } from '../../../src/store/base/conversation-key.ts';
import { claimDelivery, recordDelivery } from '../../../src/store/delivery/claim-delivery.ts';
import { aLane, aMessage, aRoute, aWorker, holder, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const policy = { holder, leaseMs: 10_000, repeatSafeMs: 0, resendUnknown: false };

describeEachDatabase('a part that is to be repeated', (open, beside) => {
  const triesAfter = async (result: SendResult) => {
    const worker = aWorker(open());
    const conversation = unique('c');
    const conversationKey = conversationKeyOf(aRoute(conversation));
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    await worker.answer(await worker.claimRun(aLane(conversation).key), 'hello');
    const first = await open().write(claimDelivery, { ...policy, conversationKey });
    if (first.kind !== 'part') throw new Error(`expected a part, got ${first.kind}`);
    const { epoch, part } = first;
    const settling = { ...policy, conversationKey, epoch, partKey: part.key, result, claimsNext: true };
    const second = await open().write(recordDelivery, settling);
    if (second.kind === 'part') return second.attempts;
    await beside.sql(`update outbox set "dueAt" = 0 where "conversationKey" = '${conversationKey}'`);
    const later = await open().write(claimDelivery, { ...policy, conversationKey });
    return later.kind === 'part' ? later.attempts : later.kind;
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
