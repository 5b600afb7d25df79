/** Parts of the mapping of events to envelopes that every network needs. Pure. */
import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundBatch } from '#contracts/channel.ts';
import type { InboundEvent, Sender } from '#contracts/envelope.ts';
import { type EventKey, eventKey, peerId } from '#contracts/ids.ts';
import { cleanText } from './clean-text.ts';

/** The sender of an event that names none. No allow-list can hold it. */
export const nobody: Sender = { id: peerId('nobody'), name: '', isBot: false, isSelf: false };

/**
 * Names an event for ever, by its kind and by what it is about. Clean, whatever a person put into it (an emoji, say):
 * no database would take the event, nor those after it.
 */
export function keyOf(kind: string, ...parts: readonly (string | number)[]): EventKey {
  return eventKey(cleanText([kind, ...parts].join(':')));
}

/** An event that Parley knows of and does nothing with. */
export function unsupported(name: string): InboundEvent {
  return { kind: 'unsupported', name: cleanText(name).slice(0, 64) };
}

/** The kind of a file that is no voice message, by its media type. */
export function fileKind(mimeType = ''): AttachmentRef['kind'] {
  const [kind] = mimeType.split('/');
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file';
}

/** An event whose mapping threw, for the intake to keep raw. */
export type UnreadableEvent = NonNullable<InboundBatch['unreadable']>[number];

/** Longest raw text kept of it, in UTF-16 code units. */
const rawLimit = 16_384;

/**
 * Describes an event that nobody could read. `nameOf` makes its key's parts of a digest of what came; an id that
 * names it better may take the digest's place.
 */
export function unreadableEvent(
  value: unknown,
  error: unknown,
  nameOf: (digest: string) => readonly (string | number)[] = (digest) => [digest],
): UnreadableEvent {
  const raw = rawOf(value);
  const digest = createHash('sha256').update(raw).digest('hex').slice(0, 32);
  const problem = error instanceof Error ? error.message.slice(0, 500) : 'unreadable';
  const key = keyOf('unreadable', ...nameOf(digest));
  return { eventKey: key, raw: cleanText(raw.slice(0, rawLimit)), problem };
}

function rawOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch {
    return inspect(value); // Nested too deep to be written down.
  }
}
