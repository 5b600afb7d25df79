/** Parts of the mapping from events to envelopes that every network needs. Pure. */
import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundBatch } from '#contracts/channel.ts';
import type { InboundEvent, Sender } from '#contracts/envelope.ts';
import { type EventKey, eventKey, type MessageId, peerId } from '#contracts/ids.ts';
import { cleanText } from './clean-text.ts';

/** The sender of an event that names none. No allow-list can contain it. */
export const nobody: Sender = { id: peerId('nobody'), name: '', isBot: false, isSelf: false };

/**
 * Returns an event's permanent key, from its kind and its subject. The key is cleaned, because people control parts of
 * it (such as an emoji) and a database would reject the event and those after it.
 */
export function keyOf(kind: string, ...parts: readonly (string | number)[]): EventKey {
  return eventKey(cleanText([kind, ...parts].join(':')));
}

/** Creates an event that Parley recognizes but ignores. `name` may give a reason: `pinned_message: pins aren’t read`. */
export function unsupported(name: string, of: { readonly messageId?: MessageId } = {}): InboundEvent {
  return { kind: 'unsupported', name: cleanText(name).slice(0, 160), ...of };
}

/** Returns the kind of a file other than a voice message, by its media type. */
export function fileKind(mimeType = ''): AttachmentRef['kind'] {
  const [kind] = mimeType.split('/');
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file';
}

/** An event whose mapping threw; the intake keeps it raw. */
export type UnreadableEvent = NonNullable<InboundBatch['unreadable']>[number];

/** Longest raw text kept of an event, in UTF-16 code units. */
const rawLimit = 16_384;

/**
 * Describes an event that couldn't be read. `nameOf` builds the parts of its key from a digest of its content; it may
 * use an id instead of the digest.
 */
export function unreadableEvent(
  value: unknown,
  error: unknown,
  nameOf: (digest: string) => readonly (string | number)[] = (digest) => [digest],
): UnreadableEvent {
  const raw = writeRaw(value);
  const digest = createHash('sha256').update(raw).digest('hex').slice(0, 32);
  const problem = error instanceof Error ? error.message.slice(0, 500) : 'unreadable';
  const key = keyOf('unreadable', ...nameOf(digest));
  return { eventKey: key, raw: cleanText(raw.slice(0, rawLimit)), problem };
}

/** Writes any value as JSON, or, if it is nested too deeply for that, as Node.js shows it. */
export function writeRaw(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch {
    return inspect(value); // Nested too deeply to be serialized.
  }
}
