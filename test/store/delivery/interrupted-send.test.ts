import { expect, it } from 'vitest';
import type { MessageId } from '../../../src/contracts/ids.ts';
import type { OutboundContent } from '../../../src/contracts/outbound.ts';
import { claimDelivery, type DeliveryPolicy } from '../../../src/store/delivery/claim-delivery.ts';
import { readPartStates } from '../../../src/store/delivery/tool-send.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { aConversation, aCourier, policy } from '../a-conversation.ts';
import { routeFor, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const messageId = '7' as MessageId;
const text = { text: 'hello', spans: [] };

const changes: readonly OutboundContent[] = [
  { kind: 'edit', messageId, text },
  { kind: 'delete', messageId },
  { kind: 'reaction', messageId, emoji: '👍' },
  { kind: 'action', tool: 'pin', input: {}, summary: 'pin', messageId },
];

describeEachDatabase('a part whose holder died while sending', (open) => {
  /** Claims the part as one process, which dies, and then as the next process on the same folder. */
  const claimTwice = async (content: OutboundContent, over: Partial<DeliveryPolicy> = {}) => {
    const { conversationKey, begin, answer } = aConversation(open());
    const folder = unique('folder');
    const run = await begin();
    await answer(run, 'hello', { parts: [{ route: routeFor(run), content, purpose: 'reply' }] });
    const claim = async (boot: string) => {
      await open().write(addProcess, { id: boot, folder });
      return aCourier(open(), conversationKey, { holder: boot, ...over }).claimNext();
    };
    await claim(unique('boot'));
    const second = await claim(unique('boot'));
    const [part] = await open().read(readPartStates, { keys: [`${run.runId}:1`] });
    return { second: second.kind, state: part?.state };
  };

  it("doesn't send a message again if its holder died while sending it", async () => {
    expect(await claimTwice({ kind: 'text', text })).toEqual({ second: 'empty', state: 'unknown' });
  });

  it.each([
    ['a message', true, 'part'],
    ['anything else', undefined, 'empty'],
  ] as const)(
    'repeats an action only if its platform recognizes it, since it becomes %s',
    async (_, isMessage, second) => {
      const action = { kind: 'action', tool: 'poll', input: {}, summary: 'poll: Lunch?' } as const;
      const content = isMessage ? { ...action, isMessage } : action;
      expect((await claimTwice(content)).second).toBe('empty');
      const keyed = { repeatSafeMs: 60_000, canLookUp: true };
      expect((await claimTwice(content, keyed)).second).toBe(second);
    },
  );

  it.each(changes)('sends a change again if its holder died while sending it: $kind', async (content) => {
    expect(await claimTwice(content)).toEqual({ second: 'part', state: 'sending' });
  });
});

describeEachDatabase('an unanswered claim', (open) => {
  it('gives an unanswered claim to the next claimer that names its id, and to no other', async () => {
    const { conversationKey, begin, answer } = aConversation(open());
    const run = await begin();
    await answer(run, 'hello', { sender: { ...policy, claimId: 'lost' } });
    const claim = (...unanswered: string[]) =>
      open().write(claimDelivery, {
        ...{ ...policy, claimId: 'next', unanswered },
        conversationKey,
      });
    expect((await claim('another')).kind).toBe('busy');
    expect(await claim('another', 'lost')).toMatchObject({
      ...{ kind: 'part', attempts: 1, step: 'send', mayHaveArrivedSince: undefined },
    });
    // The holder knows of this claim, so its call may have begun.
    expect((await claim('lost')).kind).toBe('busy');
  });
});
