import type { Outbound, SendResult } from '#contracts/outbound.ts';
import { maxTextLength, type ServerFrame } from './client-frames.ts';
import { failed, sent } from './send-result.ts';

/** A frame for connected clients, if any, and the result of the delivery. */
export type ClientDelivery =
  | { readonly kind: 'deliver'; readonly frame: ServerFrame; readonly result: SendResult }
  | { readonly kind: 'reject'; readonly result: SendResult };

/**
 * Maps a part to its delivery. The part is already in the store, from which a client reads it when it reconnects.
 * So a delivery succeeds whether or not a client is connected; the part's key is the message's id.
 */
export function clientDelivery(outbound: Outbound, at: number): ClientDelivery {
  const { content } = outbound;
  switch (content.kind) {
    case 'text':
      if (content.text.text.length > maxTextLength) return reject('the text is longer than the limit');
      return deliver({ type: 'message', messageId: outbound.key, at, ...content.text }, [outbound.key]);
    case 'edit':
      return deliver({ type: 'edited', messageId: content.messageId, ...content.text }, [content.messageId]);
    case 'delete':
      return deliver({ type: 'deleted', messageId: content.messageId }, []);
    case 'reaction':
    case 'media':
    case 'action':
      return reject(`this channel can't deliver ${content.kind}`);
    default:
      return content satisfies never;
  }
}

function deliver(frame: ServerFrame, receipts: readonly string[]): ClientDelivery {
  return { kind: 'deliver', frame, result: sent(...receipts) };
}

function reject(reason: string): ClientDelivery {
  return { kind: 'reject', result: failed('rejected', reason) };
}
