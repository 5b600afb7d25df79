/** Changes the text of an earlier part, whether it is still waiting, on its way, or shown. */

import { plainText } from '#contracts/formatted-text.ts';
import { type MessageId, messageId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import { withoutQuote } from '#contracts/route.ts';
import type { Tx } from '../base/command.ts';
import { json, type StoredContent } from '../base/json.ts';
import { changeRow, findRow } from '../base/row-by-key.ts';
import { insertPart, lockConversation } from './insert-part.ts';

/** A new text for a part. */
export type PartChange = {
  readonly key: string;
  readonly text: string;
  /** The platform id of the part's message, if an event has named it. */
  readonly messageId?: MessageId | undefined;
};

/**
 * Replaces the part's text and removes its buttons. A part that hasn't been tried yet is sent with the new text; any
 * other is followed by an edit, in the order of the conversation. Returns the conversation to deliver in; undefined
 * when there is no such part. Safe to repeat: a part is changed once.
 */
export async function changePart(tx: Tx, change: PartChange): Promise<string | undefined> {
  const { key } = change;
  const known = await readPart(tx, key);
  if (!known) return undefined;
  await lockConversation(tx, known.conversationKey);
  const part = (await readPart(tx, key)) ?? known;
  const text = plainText(change.text);
  const isUntried = part.state === 'pending' && part.sendingAt === null;
  // A part on its way keeps its text, since its channel may search for it by that text.
  if (isUntried || part.endedAt !== null) {
    const content = JSON.stringify({ kind: 'text', text } satisfies OutboundContent);
    await changeRow(tx, 'outbox', key, { content });
  }
  if (isUntried) return part.conversationKey;
  const route = withoutQuote(json.route(part.route));
  const { messageId: shown } = change;
  const content = {
    kind: 'edit-part',
    part: key,
    text,
    ...(shown !== undefined && { messageId: shown }),
  } as const;
  return insertPart(tx, { key: `${key}:changed`, route, content, purpose: 'notice' });
}

function readPart(tx: Tx, key: string) {
  return findRow(tx, 'outbox', key, ['state', 'sendingAt', 'endedAt', 'route', 'conversationKey']);
}

/**
 * Returns a row's content as its channel receives it. An edit of a part becomes an edit of that part's message;
 * undefined when the part became no message, so that there is nothing to edit.
 */
export async function outboundOf(tx: Tx, content: StoredContent): Promise<OutboundContent | undefined> {
  if (content.kind !== 'edit-part') return content;
  const row = await findRow(tx, 'outbox', content.part, ['receipts']);
  const [shown] = json.strings(row?.receipts ?? null);
  const id = shown === undefined ? content.messageId : messageId(shown);
  return id && { kind: 'edit', messageId: id, text: content.text, buttons: [] };
}
