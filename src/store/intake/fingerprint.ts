import { createHash } from 'node:crypto';

/**
 * Fingerprint to compare redeliveries: when the event was sent, and 16 bits of its text, salted with its key.
 * That shows two texts to be different, and is too little to find one out that was refused.
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
 * Whether two events of one key can hardly be the same one: date and text both differ. A message that was
 * edited meanwhile has its date still, and one whose date could not be believed its text.
 */
export function isOtherEvent(stored: string | null | undefined, told: string | null | undefined): boolean {
  if (stored == null || told == null) return false;
  const [storedAt, storedText] = stored.split(':');
  const [toldAt, toldText] = told.split(':');
  return storedAt !== toldAt && storedText !== toldText;
}
