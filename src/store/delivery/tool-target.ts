/**
 * Which messages a tool may refer to: those of the conversation it speaks in, and of the session that has heard or said
 * them. An id may come from anywhere, so whatever else it names is refused.
 */
import { ParleyError } from '#contracts/errors.ts';
import { type MessageId, messageId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { Tx } from '../base/command.ts';
import { json, type StoredContent } from '../base/json.ts';

/** Stands for the newest message of the agent's own; no network has such an id. */
export const lastOwn = messageId('last');

/** Where a tool speaks: a conversation, and the lane whose session speaks there. */
export type ToolPlace = {
  readonly laneKey: string;
  readonly conversationKey: string;
  /** The run whose messages alone may be changed. */
  readonly onlyRun?: string | undefined;
};

/** Returns the message that a new one may quote: somebody's, or the agent's own. Throws `invalid_input` for any other. */
export async function findQuoted(tx: Tx, place: ToolPlace, named: MessageId): Promise<MessageId> {
  const id = await resolve(tx, place, named);
  if ((await isHeard(tx, place, id)) || (await findOwn(tx, place, id))) return id;
  throw notHere(id);
}

/** Whether it is about a message that exists, and making it twice has the same result. */
export function isChange({ kind }: StoredContent): boolean {
  return kind === 'edit' || kind === 'delete' || kind === 'reaction';
}

/**
 * The content with the id of the message that it is about, once that may be changed so: somebody's by a reaction, the
 * agent's own by an edit or removal. Throws `invalid_input` for any other.
 */
export async function withTarget(
  tx: Tx,
  place: ToolPlace,
  content: OutboundContent,
): Promise<OutboundContent> {
  switch (content.kind) {
    case 'text':
    case 'media':
      return content;
    case 'reaction':
      if (await isHeard(tx, place, content.messageId)) return content;
      throw notHere(content.messageId);
    case 'edit':
    case 'delete':
      return { ...content, messageId: await findChangeable(tx, place, content) };
    default:
      return content satisfies never;
  }
}

type OwnChange = Extract<OutboundContent, { kind: 'edit' | 'delete' }>;

async function findChangeable(tx: Tx, place: ToolPlace, change: OwnChange): Promise<MessageId> {
  const id = await resolve(tx, place, change.messageId);
  const own = await findOwn(tx, place, id);
  if (!own) throw new ParleyError('invalid_input', `Message ${id} is none that you have sent here.`);
  // Others may rely on what was said to them: no stranger has it changed.
  if (place.onlyRun !== undefined && own.runId !== place.onlyRun)
    throw new ParleyError('invalid_input', 'A guest may have only messages of this turn changed or removed.');
  if (change.kind === 'edit' && json.outbound(own.content).kind === 'media')
    throw new ParleyError('invalid_input', `Message ${id} is a file, which cannot be edited.`);
  return id;
}

/** A group that became another one counts its messages anew: there the id would be that of some other message. */
export function refuseMoved(place: ToolPlace, conversationKey: string): void {
  if (conversationKey === place.conversationKey) return;
  throw new ParleyError(
    'invalid_input',
    'This group has a new id by now; its earlier messages stay as they are.',
  );
}

async function resolve(tx: Tx, place: ToolPlace, named: MessageId): Promise<MessageId> {
  return named === lastOwn ? readLastOwn(tx, place) : named;
}

function notHere(id: MessageId): ParleyError {
  return new ParleyError('invalid_input', `There is no message ${id} in this conversation.`);
}

/** Somebody's message, for the agent or shown to it beside one. */
async function isHeard(tx: Tx, { laneKey, conversationKey }: ToolPlace, id: MessageId): Promise<boolean> {
  const item = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('conversationKey', '=', conversationKey)
    .where('messageId', '=', id)
    .where('laneKey', '=', laneKey)
    .executeTakeFirst();
  if (item) return true;
  const context = await tx.db
    .selectFrom('groupContext')
    .select('seq')
    .where('conversationKey', '=', conversationKey)
    .where('messageId', '=', id)
    .where('laneKey', '=', laneKey)
    .executeTakeFirst();
  return context !== undefined;
}

/** The part that became this message, if the agent said it in this lane. Parley's own notices aren't the agent's. */
function findOwn(tx: Tx, { laneKey, conversationKey }: ToolPlace, id: MessageId) {
  return tx.db
    .selectFrom('receipts')
    .innerJoin('outbox', 'outbox.key', 'receipts.partKey')
    .select(['outbox.content', 'outbox.runId'])
    .where('receipts.conversationKey', '=', conversationKey)
    .where('receipts.messageId', '=', id)
    .where('outbox.laneKey', '=', laneKey)
    .where('outbox.purpose', 'in', ['reply', 'tool'])
    .executeTakeFirst();
}

/** So many of the newest parts are looked through. */
const lookedThrough = 50;

async function readLastOwn(tx: Tx, { laneKey, conversationKey }: ToolPlace): Promise<MessageId> {
  const parts = await tx.db
    .selectFrom('outbox')
    .select(['content', 'receipts', 'state', 'purpose'])
    .where('laneKey', '=', laneKey)
    .where('seq', 'is not', null)
    .where('conversationKey', '=', conversationKey)
    .where('state', '<>', 'failed')
    .orderBy('seq', 'desc')
    .limit(lookedThrough)
    .execute();
  const removed = new Set<string>();
  for (const { content: stored, purpose, state, receipts } of parts) {
    const content = json.outbound(stored);
    if (content.kind === 'delete') removed.add(content.messageId);
    if (state !== 'sent' || (purpose !== 'reply' && purpose !== 'tool')) continue;
    const id = json.strings(receipts).findLast((each) => !removed.has(each));
    if (id !== undefined) return messageId(id);
  }
  throw new ParleyError('invalid_input', 'No message of yours is known in this conversation.');
}
