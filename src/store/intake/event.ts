import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { ConversationId } from '#contracts/ids.ts';
import type { StoreQuery, Tx } from '../base/command.ts';

/** A conversation and its anchor. */
export type Anchor = readonly [conversation: ConversationId, anchor: string];

/**
 * Moves anchors, each only forward, so a batch that is stored again or late changes nothing. Anchors are decimal
 * numbers as text, so the longer one is the later one.
 */
export async function moveAnchors(tx: Tx, account: string, anchors: readonly Anchor[]): Promise<void> {
  for (const [conversation, anchor] of anchors) {
    await tx.db
      .insertInto('anchors')
      .values({ account, conversation, anchor })
      .onConflict((c) => c.columns(['account', 'conversation']).doUpdateSet({ anchor }).where(isLater))
      .execute();
  }
}

const isLater = sql<boolean>`(length(excluded."anchor"), excluded."anchor") > (length("anchors"."anchor"), "anchors"."anchor")`;

/** Reads the anchor of each of the account's conversations, for the process that has just claimed the account. */
export const readAnchors: StoreQuery<{ readonly account: string }, readonly Anchor[]> = {
  query: 'readAnchors',
  run: async (tx, { account }) => {
    const rows = await tx.db
      .selectFrom('anchors')
      .select(['conversation', 'anchor'])
      .where('account', '=', account)
      .execute();
    return rows.map((row): Anchor => [row.conversation as ConversationId, row.anchor]);
  },
};

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

/**
 * An event that couldn't be read is stored as it came, which `why` doesn't show. If its channel knows the cause, a line
 * with it comes first; an event itself is JSON, so it never begins like that line.
 */
const causeLine = /^# ([^\n]{1,300})\n/;

/** Returns the text to store. `cause`: why it couldn't be read, without any of its content. */
export function withCause(raw: string, cause: string | undefined): string {
  const line = cause?.replace(/\s+/g, ' ').trim().slice(0, 300).toWellFormed();
  return line ? `# ${line}\n${raw}` : raw;
}

/** Returns the cause that was stored with the event. */
export function causeIn(stored: string | undefined): string | undefined {
  return causeLine.exec(stored ?? '')?.[1];
}
