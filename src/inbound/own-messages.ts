import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { Store } from '../store/base/command.ts';
import { conversationKeyOf } from '../store/base/conversation-key.ts';
import { type MessagePlace, readOwnMessages } from '../store/reads/own-messages.ts';

/**
 * Marks replies to the bot if the network doesn't say whose message they answer: the bot's messages are known from
 * their receipts. Costs nothing for a batch without such replies.
 */
export async function markOwnReplies(
  store: Pick<Store, 'read'>,
  events: readonly InboundEnvelope[],
): Promise<readonly InboundEnvelope[]> {
  const places = events.flatMap((envelope) => placeOf(envelope) ?? []);
  if (places.length === 0) return events;
  const own = await store.read(readOwnMessages, { places });
  const isOwn = (envelope: InboundEnvelope) => {
    const place = placeOf(envelope);
    return place !== undefined && places.some((one, index) => own[index] && isSame(one, place));
  };
  return events.map((envelope) => {
    const { event } = envelope;
    return event.kind === 'message' && isOwn(envelope)
      ? { ...envelope, event: { ...event, repliesToBot: true } }
      : envelope;
  });
}

function placeOf({ event, route }: InboundEnvelope): MessagePlace | undefined {
  if (event.kind !== 'message' || event.repliesToBot || event.repliesTo === undefined) return undefined;
  return { conversationKey: conversationKeyOf(route), messageId: event.repliesTo };
}

function isSame(one: MessagePlace, other: MessagePlace): boolean {
  return one.conversationKey === other.conversationKey && one.messageId === other.messageId;
}
