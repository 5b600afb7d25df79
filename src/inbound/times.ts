/**
 * Decides how far an event's times are trusted. `sentAt` may come from the sender's own clock and is only displayed;
 * limits count by the time when a server, or Parley, received the event.
 */

import { clampRemote, remoteTime } from '#channel-kit/remote-number.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';

/** No platform keeps events longer, and by then limits have long been free again. */
const longestBacklogMs = 24 * 3_600_000;

/** Returns the envelope with dates that can be displayed, sorted and counted by, whatever the platform said. */
export function withSaneTimes(envelope: InboundEnvelope, now: number): InboundEnvelope {
  const range = { min: now - longestBacklogMs, max: now, fallback: now };
  return {
    ...envelope,
    sentAt: remoteTime(envelope.sentAt, now),
    receivedAt: clampRemote(envelope.receivedAt, range),
  };
}
