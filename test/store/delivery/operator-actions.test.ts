import { expect, it } from 'vitest';
import { dropPart, readUndelivered, retryPart } from '../../../src/store/delivery/operator-actions.ts';
import { aConversation } from '../a-conversation.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readOutcomes } from '../lanes/outcomes.ts';

describeEachDatabase('operator actions on parts', (open) => {
  const anUnknownPart = async () => {
    const { conversation, conversationKey, begin, answer, claimPart, deliver } = aConversation(open());
    await answer(await begin(), `answer in ${conversation}`);
    const { part } = await deliver({ kind: 'unknown', reason: 'cut' });
    return { key: part.key, conversationKey, claimPart };
  };

  it('lists an undelivered part and sends it again', async () => {
    const { key, claimPart } = await anUnknownPart();
    const listed = await open().read(readUndelivered, { limit: 100 });
    expect(listed.find((part) => part.key === key)).toMatchObject({ state: 'unknown', problem: 'cut' });
    expect(await open().write(retryPart, { key })).toBe('done');
    expect((await claimPart()).part.key).toBe(key);
  });

  it('changes the outcome of a message when the operator drops or retries its answer', async () => {
    const { key, conversationKey } = await anUnknownPart();
    const outcomes = () => open().read(readOutcomes, { conversationKey });
    expect(await outcomes()).toEqual(['answered: delivery unknown']);
    await open().write(dropPart, { key });
    expect(await outcomes()).toEqual(['failed: delivery failed']);
    await open().write(retryPart, { key });
    expect(await outcomes()).toEqual(['answered']);
  });

  it('drops an unknown part once, and reports a missing one', async () => {
    const { key } = await anUnknownPart();
    expect(await open().write(dropPart, { key })).toBe('done');
    expect(await open().write(dropPart, { key })).toBe('not-possible');
    expect(await open().write(retryPart, { key: 'nobody:1' })).toBe('not-found');
  });
});
