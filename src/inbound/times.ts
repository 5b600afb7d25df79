/**
 * The times of an event, as far as they are believed. `sentAt` may be the sender's own clock and is only
 * shown; what limits count by is when a server, or Parley, received it.
 */

import { clampRemote, remoteTime } from '#channel-kit/remote-number.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';

/** No platform keeps events for longer, and a limit has long been free again by then. */
const longestBacklogMs = 24 * 3_600_000;

/** The envelope with dates that can be shown, sorted and counted by, whatever the platform said. */
export function withSaneTimes(envelope: InboundEnvelope, now: number): InboundEnvelope {
  const range = { min: now - longestBacklogMs, max: now, fallback: now };
  return {
    ...envelope,
    sentAt: remoteTime(envelope.sentAt, now),
    receivedAt: clampRemote(envelope.receivedAt, range),
  };
}
