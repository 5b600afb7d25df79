import type { InboundEnvelope, InboundEvent } from '#contracts/envelope.ts';
import { eventKey, messageId, peerId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { EffectFrame } from './client-frames.ts';

/** The only person on a channel of clients: nobody else can connect. */
const owner = peerId('owner');

/**
 * Maps a frame to an envelope. The client's id is the event key, so a frame that is resent after a lost
 * connection is the same event. `sentAt` is the time at which the gateway received it, ms.
 */
export function clientEnvelope(frame: EffectFrame, route: ReplyRoute, sentAt: number): InboundEnvelope {
  return {
    eventKey: eventKey(frame.id),
    sentAt,
    route: frame.type === 'send' ? { ...route, replyTo: messageId(frame.id) } : route,
    chat: { kind: 'dm' },
    sender: { id: owner, name: 'you', isBot: false, isSelf: false },
    event: inboundEvent(frame),
  };
}

function inboundEvent(frame: EffectFrame): InboundEvent {
  switch (frame.type) {
    case 'send':
      return {
        kind: 'message',
        messageId: messageId(frame.id),
        text: frame.text,
        provenance: 'typed',
        attachments: [],
        mentionsBot: false,
        repliesToBot: false,
      };
    case 'stop':
      return { kind: 'stop' };
    case 'edit':
      return { kind: 'edit', messageId: messageId(frame.message), text: frame.text, provenance: 'typed' };
    case 'delete':
      return { kind: 'delete', messageId: messageId(frame.message) };
    case 'press':
      return { kind: 'button', messageId: messageId(frame.message), data: frame.button };
    default:
      return frame satisfies never;
  }
}
