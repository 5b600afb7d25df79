import type { Store } from '../../src/store/base/command.ts';
import type { LaneSpec } from '../../src/store/base/keys.ts';
import {
  claimDelivery,
  type Delivery,
  type DeliveryPolicy,
  recordDelivery,
} from '../../src/store/delivery/claim-delivery.ts';
import type { SendOutcome } from '../../src/store/delivery/end-part.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import {
  aCommand,
  aLane,
  aMessage,
  aWorker,
  defaults,
  holder,
  type Saying,
  type TestCommand,
  unique,
} from './builders.ts';

/** A holder whose platform doesn't recognize repeats, and that never repeats a send whose fate is unknown. */
export const policy: DeliveryPolicy = { holder, leaseMs: 10_000, repeatSafeMs: 0, resendUnknown: false };

export type ClaimedPart = Extract<Delivery, { kind: 'part' }>;

/** Returns the steps that deliver the parts of one conversation. */
export function aCourier(store: Store, conversationKey: string, over: Partial<DeliveryPolicy> = {}) {
  const target = { ...policy, ...over, conversationKey };
  const claimNext = (): Promise<Delivery> => store.write(claimDelivery, target);
  /** Throws if no part is due. */
  const claimPart = async (): Promise<ClaimedPart> => {
    const claimed = await claimNext();
    if (claimed.kind !== 'part') throw new Error(`expected a part, got ${claimed.kind}`);
    return claimed;
  };
  const record = (claimed: ClaimedPart, result: SendOutcome, claimsNext = false): Promise<Delivery> => {
    const { epoch, part, mayHaveArrivedSince } = claimed;
    return store.write(recordDelivery, {
      ...target,
      epoch,
      partKey: part.key,
      mayHaveArrivedSince,
      result,
      claimsNext,
    });
  };
  /** Delivers the next part with this result and returns it. */
  const deliver = async (result: SendOutcome = { kind: 'sent', receipts: [] }): Promise<ClaimedPart> => {
    const claimed = await claimPart();
    await record(claimed, result);
    return claimed;
  };
  return { claimNext, claimPart, record, deliver };
}

type ConversationOptions = Partial<Omit<LaneSpec, 'settings'>> & {
  readonly settings?: Partial<LaneSpec['settings']>;
};

/** Returns a conversation that no other test uses, its worker, and short names for their steps. */
export function aConversation(store: Store, { settings, ...over }: ConversationOptions = {}) {
  const conversation = unique('c');
  const lane = aLane(conversation, { ...over, settings: { ...defaults, ...settings } });
  const worker = aWorker(store);
  const saying = (text = 'hi', more: Partial<Saying> = {}) => aMessage({ conversation, text, lane, ...more });
  const say = (text?: string, more?: Partial<Saying>) => worker.accept(saying(text, more));
  const claimRun = (leaseMs?: number): Promise<ClaimedRun> => worker.claimRun(lane.key, leaseMs);
  return {
    conversation,
    conversationKey: `test/bot/${conversation}`,
    lane,
    laneKey: lane.key,
    worker,
    saying,
    say,
    claim: (leaseMs?: number) => worker.claim(lane.key, leaseMs),
    claimRun,
    /** Accepts a message and claims the run that it starts. */
    begin: async (text?: string, more?: Partial<Saying>): Promise<ClaimedRun> => {
      await say(text, more);
      return claimRun();
    },
    answer: worker.answer,
    command: (effect: TestCommand, sender?: string) =>
      worker.accept(aCommand(conversation, effect, sender, lane)),
    ...aCourier(store, `test/bot/${conversation}`),
  };
}
