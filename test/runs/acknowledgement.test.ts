import { expect, it } from 'vitest';
import type { ChannelAdapter, HostedChannel } from '../../src/contracts/channel.ts';
import type { OutboundContent, SendResult } from '../../src/contracts/outbound.ts';
import type { Store } from '../../src/store/base/command.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { plainCapabilities } from '../channel-host/plain-capabilities.ts';
import { aConversation, aCourier } from '../store/a-conversation.ts';
import { unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { showMarksNow } from '../store/show-marks-now.ts';
import { playNext, runSettings } from './run-builders.ts';

const adapter: Pick<ChannelAdapter, 'send'> = { send: async () => ({ kind: 'sent', receipts: [] }) };
const channel = {
  adapter,
  definition: { capabilities: { ...plainCapabilities, canReact: true } },
} as unknown as HostedChannel;
const sent: SendResult = { kind: 'sent', receipts: [] };
const refused: SendResult = { kind: 'failed', failure: { kind: 'rejected' }, reason: 'no reactions here' };

const shown = (content: OutboundContent) => {
  if (content.kind === 'reaction') return `${content.isRemoved ? '-' : '+'}${content.emoji}`;
  return content.kind === 'text' ? content.text.text : content.kind;
};

describeEachDatabase('the reaction on a message that is being answered', (open) => {
  /** Plays a run; `result`: what the platform says of the reaction, before the answer or after it. */
  const play = async (store: Store, text: string, { result, isLate = false }: Play = {}) => {
    const { laneKey, say, conversationKey } = aConversation(store);
    await say('go', { messageId: unique('m') });
    const courier = aCourier(store, conversationKey);
    const calls: string[] = [];
    const deliver = async () => {
      for (let next = await courier.claimNext(); next.kind === 'part'; next = await courier.claimNext()) {
        const { content } = next.part;
        calls.push(shown(content));
        await courier.record(next, (content.kind === 'reaction' && result) || sent);
      }
    };
    await playNext(store, laneKey, {
      model: scriptedModel(async function* () {
        if (!isLate) await deliver();
        yield* says(text);
      }),
      over: {
        channelFor: () => channel,
        settings: {
          ...runSettings,
          displayOn: () => ({ ...runSettings.displayOn(''), ackReaction: '👀' }),
        },
      },
    });
    await deliver();
    await showMarksNow(store, laneKey);
    await deliver();
    const { inbox } = await readLane(store, laneKey);
    return { calls, outcomes: inbox.map(({ outcome }) => outcome) };
  };
  type Play = { readonly result?: SendResult; readonly isLate?: boolean };

  it('sets the reaction before the answer, and takes it back after it', async () => {
    const { calls, outcomes } = await play(open(), 'Hello.');
    expect(calls).toEqual(['+👀', 'Hello.', '-👀']);
    expect(outcomes).toEqual(['answered']);
  });

  it('takes the reaction back after silence, too', async () => {
    expect((await play(open(), 'NO_REPLY')).calls).toEqual(['+👀', '-👀']);
  });

  it('ignores that a network refuses the reaction', async () => {
    const { calls, outcomes } = await play(open(), 'Hello.', { result: refused });
    expect(calls).toEqual(['+👀', 'Hello.']);
    expect(outcomes).toEqual(['answered']);
  });

  it('sends no reaction once the answer is stored', async () => {
    expect((await play(open(), 'Hello.', { isLate: true })).calls).toEqual(['Hello.']);
  });
});
