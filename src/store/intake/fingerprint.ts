import { createHash } from 'node:crypto';

/**
 * Returns a fingerprint for comparing redeliveries: the event's send time, and 16 bits of a hash of its text, salted
 * with its key. That is enough to tell texts apart, but too little to recover a refused text.
 */
export function fingerprintOf(event: {
  readonly eventKey: string;
  readonly sentAt: number;
  readonly text: string;
}): string {
  const digest = createHash('sha256').update(event.eventKey).update('\0').update(event.text).digest('hex');
  return `${event.sentAt}:${digest.slice(0, 4)}`;
}

/**
 * Says whether two events with one key can hardly be the same event, because both date and text differ. A message that
 * was edited meanwhile keeps its date, and one whose date wasn't credible keeps its text.
 */
export function isOtherEvent(stored: string | null | undefined, told: string | null | undefined): boolean {
  if (stored == null || told == null) return false;
  const [storedAt, storedText] = stored.split(':');
  const [toldAt, toldText] = told.split(':');
  return storedAt !== toldAt && storedText !== toldText;
}
