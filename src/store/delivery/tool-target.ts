/**
 * Decides which messages a tool may refer to: those in the conversation it sends to that its session has received or
 * sent. An id may come from anywhere, so any other message is refused.
 */
import { ParleyError } from '#contracts/errors.ts';
import { type MessageId, messageId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { Tx } from '../base/command.ts';
import { json, type StoredContent } from '../base/json.ts';

/** Represents the agent's own newest message; no network has such an id. */
export const lastOwn = messageId('last');

/** Where a tool sends: a conversation, and the lane whose session sends there. */
export type ToolPlace = {
  readonly laneKey: string;
  readonly conversationKey: string;
  /** If set, only this run's messages may be changed. */
  readonly onlyRun?: string | undefined;
};

/** Returns the message that a new one may quote: a person's or the agent's own. Throws `invalid_input` otherwise. */
export async function findQuoted(tx: Tx, place: ToolPlace, named: MessageId): Promise<MessageId> {
  const id = await resolve(tx, place, named);
  if ((await isHeard(tx, place, id)) || (await findOwn(tx, place, id))) return id;
  throw notHere(id);
}

/** Says whether the content changes an existing message, so that repeating it has the same result. */
export function isChange({ kind }: StoredContent): boolean {
  return kind === 'edit' || kind === 'delete' || kind === 'reaction';
}

/**
 * Returns the content with the id of the message that it changes, provided that the change is allowed: reactions to
 * people's messages, edits and removals of the agent's own. Throws `invalid_input` for any other.
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
  if (!own) throw new ParleyError('invalid_input', `Message ${id} isn't one that you have sent here.`);
  // Others may rely on earlier messages, so a stranger can't have them changed.
  if (place.onlyRun !== undefined && own.runId !== place.onlyRun)
    throw new ParleyError('invalid_input', 'A guest can only have messages of this turn changed or removed.');
  if (change.kind === 'edit' && json.outbound(own.content).kind === 'media')
    throw new ParleyError('invalid_input', `Message ${id} is a file, which cannot be edited.`);
  return id;
}

/** Refuses an id from before the group moved: message ids start over there, so it would name a different message. */
export function refuseMoved(place: ToolPlace, conversationKey: string): void {
  if (conversationKey === place.conversationKey) return;
  throw new ParleyError(
    'invalid_input',
    'This group has a new id now; its earlier messages stay as they are.',
  );
}

async function resolve(tx: Tx, place: ToolPlace, named: MessageId): Promise<MessageId> {
  return named === lastOwn ? readLastOwn(tx, place) : named;
}

function notHere(id: MessageId): ParleyError {
  return new ParleyError('invalid_input', `There is no message ${id} in this conversation.`);
}

/** Says whether it is a person's message, sent to the agent or shown to it as context. */
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

/** Finds the part that became this message, if the agent sent it in this lane. Parley's notices aren't the agent's. */
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

/** How many of the newest parts are searched. */
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
