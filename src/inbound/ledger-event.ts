import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { SenderRole } from '../store/access/sender-roles.ts';
import { conversationKeyOf } from '../store/base/conversation-key.ts';
import { fingerprintOf } from '../store/intake/fingerprint.ts';
import type { Proposal } from '../store/intake/proposal.ts';
import { shownText, unreadFields } from './inbound-content.ts';

type ArrivingEvent = { readonly envelope: InboundEnvelope; readonly standing: SenderRole };

/** Returns the event as the ledger records it, whatever is decided about it. */
export function eventOf({ envelope, standing }: ArrivingEvent): Omit<Proposal, 'decision'> {
  const { event, route, sender, eventKey } = envelope;
  const base = {
    eventKey,
    kind: event.kind,
    conversationKey: conversationKeyOf(route),
    senderId: sender.id,
    standing,
  };
  const named = 'messageId' in event && event.messageId !== undefined ? { messageId: event.messageId } : {};
  if (event.kind === 'unsupported') return { ...base, ...named, detail: event.name };
  if (event.kind !== 'message' && event.kind !== 'edit') return { ...base, ...named };
  const { sentAt } = envelope;
  const fields = unreadFields(event);
  const fingerprint = fingerprintOf({ eventKey, sentAt, text: shownText(event) });
  return { ...base, ...named, fingerprint, ...(fields.length > 0 && { detail: fields.join(', ') }) };
}
