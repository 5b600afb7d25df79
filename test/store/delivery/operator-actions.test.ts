import { expect, it } from 'vitest';
import { claimDelivery, recordDelivery } from '../../../src/store/delivery/claim-delivery.ts';
import { dropPart, readUndelivered, retryPart } from '../../../src/store/delivery/operator-actions.ts';
import { aLane, aMessage, aWorker, holder, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readOutcomes } from '../lanes/outcomes.ts';

const policy = { holder, leaseMs: 10_000, repeatSafeMs: 0, resendUnknown: false };

describeEachDatabase('the operator', (open) => {
  const anUnknownPart = async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    await worker.answer(await worker.claimRun(aLane(conversation).key), `answer in ${conversation}`);
    const conversationKey = `test/bot/${conversation}`;
    const claimed = await open().write(claimDelivery, { ...policy, conversationKey });
    if (claimed.kind !== 'part') throw new Error('nothing to deliver');
    const { part, epoch } = claimed;
    const result = { kind: 'unknown', reason: 'cut' } as const;
    await open().write(recordDelivery, {
      ...policy,
      conversationKey,
      epoch,
      partKey: part.key,
      result,
      claimsNext: true,
    });
    return { key: part.key, conversationKey };
  };

  it('sees what is not delivered and sends it once more', async () => {
    const { key, conversationKey } = await anUnknownPart();
    const listed = await open().read(readUndelivered, { limit: 100 });
    expect(listed.find((part) => part.key === key)).toMatchObject({ state: 'unknown', problem: 'cut' });
    expect(await open().write(retryPart, { key })).toBe('done');
    const again = await open().write(claimDelivery, { ...policy, conversationKey });
    expect(again.kind === 'part' && again.part.key).toBe(key);
  });

  it('changes what became of the message with the part that answered it', async () => {
    const { key, conversationKey } = await anUnknownPart();
    const outcomes = () => open().read(readOutcomes, { conversationKey });
    expect(await outcomes()).toEqual(['answered: delivery unknown']);
    await open().write(dropPart, { key });
    expect(await outcomes()).toEqual(['failed: delivery failed']);
    await open().write(retryPart, { key });
    expect(await outcomes()).toEqual(['answered']);
  });

  it('drops what is unknown, and leaves alone what was sent or never was', async () => {
    const { key } = await anUnknownPart();
    expect(await open().write(dropPart, { key })).toBe('done');
    expect(await open().write(dropPart, { key })).toBe('not-possible');
    expect(await open().write(retryPart, { key: 'nobody:1' })).toBe('not-found');
  });
});
