import { basename } from 'node:path';
import { plainText } from '#contracts/formatted-text.ts';
import { filesOf, type Outbound, type OutboundFile, type SendResult } from '#contracts/outbound.ts';
import type { SentFile } from '#contracts/timeline.ts';
import { cleanFileName } from './clean-text.ts';
import { maxTextLength, type ServerFrame } from './client-frames.ts';
import { failed, sent } from './send-result.ts';

/** A frame for connected clients, if any, and the result of the delivery. */
export type ClientDelivery =
  | { readonly kind: 'deliver'; readonly frame: ServerFrame; readonly result: SendResult }
  | { readonly kind: 'reject'; readonly result: SendResult };

/** Largest file that a client is shown, bytes; the settings usually allow less. */
export const maxFileBytes = 2_000_000_000;

/**
 * Maps a part to its delivery. The part is already in the store, from which a client reads it when it reconnects.
 * So a delivery succeeds whether or not a client is connected; the part's key is the message's id.
 * `sizeBytes`: of the file that it sends; undefined if that can't be read.
 */
export function clientDelivery(
  outbound: Outbound,
  { at, sizeBytes }: { readonly at: number; readonly sizeBytes: number | undefined },
): ClientDelivery {
  const { content } = outbound;
  switch (content.kind) {
    case 'text':
      if (content.text.text.length > maxTextLength) return reject('the text is longer than the limit');
      return deliver({ type: 'message', messageId: outbound.key, at, ...content.text }, [outbound.key]);
    case 'edit':
      return deliver({ type: 'edited', messageId: content.messageId, ...content.text }, [content.messageId]);
    case 'delete':
      return deliver({ type: 'deleted', messageId: content.messageId }, []);
    case 'media': {
      if (sizeBytes === undefined) return reject('the file to send cannot be read');
      if (sizeBytes > maxFileBytes) return reject(`the file is larger than ${maxFileBytes} bytes`);
      const { caption = plainText('') } = content;
      // There are no albums here: each file is a message of its own.
      const [only] = filesOf(content);
      if (only === undefined) return reject('there is no file to send');
      const file = { ...sentFile(only, basename(only.path)), sizeBytes };
      return deliver({ type: 'message', messageId: outbound.key, at, ...caption, file }, [outbound.key]);
    }
    case 'reaction':
    case 'action':
      return reject(`this channel can't deliver ${content.kind}`);
    default:
      return content satisfies never;
  }
}

/** Describes a file to clients; `stored` is the name of its copy in the media folder. */
export function sentFile({ name, mimeType }: OutboundFile, stored: string): SentFile {
  return { name: cleanFileName(name), mimeType, stored };
}

function deliver(frame: ServerFrame, receipts: readonly string[]): ClientDelivery {
  return { kind: 'deliver', frame, result: sent(...receipts) };
}

function reject(reason: string): ClientDelivery {
  return { kind: 'reject', result: failed('rejected', reason) };
}
