import { ParleyError } from '#contracts/errors.ts';
import { type MessageId, messageId } from '#contracts/ids.ts';
import type { MessagePart } from '#contracts/message.ts';
import { filesOf, type OutboundContent } from '#contracts/outbound.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { json, type StoredContent } from '../base/json.ts';
import { conversationKeyOf } from '../base/keys.ts';
import { type Lane, lockLane, lockLaneAt, lockLanes, takeSeq } from '../rows/lane.ts';
import { assertRunActive, type RunFence } from '../rows/run.ts';
import { appendMessage } from '../rows/transcript.ts';
import { insertPart } from './part.ts';

/** A message sent by a tool, as its step receives it. */
export type ToolSendInput = RunFence & {
  /** Made from run and call, so that a repeated call finds the parts it made before. */
  readonly key: string;
  readonly route: ReplyRoute;
  /** Lane of another session to send to; absent: the run's own conversation. */
  readonly toLane?: string;
  readonly contents: readonly OutboundContent[];
  /** The message that the first of the contents quotes, or `lastOwn`. */
  readonly quotes?: MessageId;
  /** True if only messages that this run has sent may be changed. */
  readonly changesOwnOnly?: boolean;
};

/** The stored parts of a tool send. */
export type ToolSendResult = {
  readonly keys: readonly string[];
  readonly route: ReplyRoute;
  readonly conversationKey: string;
};

/**
 * Stores a tool send in one transaction: the parts and, for another conversation, a line in its transcript, so that the
 * recipient's reply makes sense. Throws `invalid_input` when nobody has ever written there, when the message it refers
 * to isn't one of that conversation, and for a run that was asked to stop or has ended.
 */
export const storeToolParts: StoreCommand<ToolSendInput, ToolSendResult> = {
  name: 'storeToolParts',
  run: async (tx, input) => {
    const { toLane } = input;
    const isElsewhere = toLane !== undefined && toLane !== input.laneKey;
    if (isElsewhere) await lockLanes(tx, [toLane, input.laneKey]);
    const own = await lockLaneAt(tx, input.laneKey, input.epoch);
    const lane = isElsewhere ? await requireLane(tx, toLane) : own;
    const route = isElsewhere ? await lastRoute(tx, lane) : input.route;
    const known = await readToolParts(tx, input);
    const [first] = known;
    if (first) {
      const { route, conversationKey } = first;
      return { keys: known.map(({ key }) => key), route: json.route(route), conversationKey };
    }
    const keys = input.contents.map((_, index) => `${input.key}:${index}`);
    await assertRunActive(tx, input.runId);
    const onlyRun = input.changesOwnOnly ? input.runId : undefined;
    const place = { laneKey: lane.key, conversationKey: conversationKeyOf(route), onlyRun };
    const replyTo = input.quotes && (await findQuoted(tx, place, input.quotes));
    let { conversationKey } = place;
    for (const [index, content] of input.contents.entries()) {
      const timeline = { laneKey: lane.key, seq: await takeSeq(tx, lane.key) };
      conversationKey = await insertPart(tx, {
        key: keys[index] ?? input.key,
        route: replyTo !== undefined && index === 0 ? { ...route, replyTo } : route,
        content: await withTarget(tx, place, content),
        purpose: 'tool',
        runId: input.runId,
        answer: input.key,
        timeline,
      });
    }
    if (replyTo !== undefined || input.contents.some(isChange)) refuseMoved(place, conversationKey);
    if (isElsewhere) await noteSpoken(tx, lane, input);
    return { keys, route, conversationKey };
  },
};

function readToolParts(tx: Tx, { runId, key }: Pick<ToolSendInput, 'runId' | 'key'>) {
  return tx.db
    .selectFrom('outbox')
    .select(['key', 'conversationKey', 'route'])
    .where('runId', '=', runId)
    .where('answer', '=', key)
    .orderBy('place')
    .execute();
}

/** Says whether the call has stored its parts; if so, `storeToolParts` finds them again, whatever its input. */
export const readIsPosted: StoreQuery<Pick<ToolSendInput, 'runId' | 'key'>, boolean> = {
  query: 'readIsPosted',
  run: async (tx, call) => (await readToolParts(tx, call)).length > 0,
};

async function requireLane(tx: Tx, key: string): Promise<Lane> {
  const lane = await lockLane(tx, key);
  if (lane) return lane;
  throw new ParleyError(
    'invalid_input',
    `There is no conversation ${key}; sessions_list shows the existing ones.`,
  );
}

async function lastRoute(tx: Tx, { key: laneKey }: Lane): Promise<ReplyRoute> {
  const route = await readLastRoute.run(tx, { laneKey });
  if (route !== undefined) return route;
  throw new ParleyError(
    'invalid_input',
    `Nobody has written in ${laneKey} yet, so there is nowhere to send to.`,
  );
}

/** Reads the route for messages sent to a lane: where somebody last wrote. Undefined when nobody ever has. */
export const readLastRoute: StoreQuery<{ readonly laneKey: string }, ReplyRoute | undefined> = {
  query: 'readLastRoute',
  run: async (tx, { laneKey }) => {
    const row = await tx.db
      .selectFrom('inbox')
      .select('route')
      .where('laneKey', '=', laneKey)
      .where('source', '=', 'platform')
      .orderBy('seq', 'desc')
      .limit(1)
      .executeTakeFirst();
    if (!row) return undefined;
    return withoutQuote(json.route(row.route));
  },
};

async function noteSpoken(tx: Tx, lane: Lane, { contents, key }: ToolSendInput): Promise<void> {
  const said = contents.flatMap(wordsOf).join('\n');
  if (said === '') return;
  // Not an assistant message: a run that is active here must not take it for its own answer.
  const text = `From another conversation, you sent this message here: ${said}`;
  const parts: readonly MessagePart[] = [{ type: 'text', data: { text } }];
  await appendMessage(tx, {
    id: `${key}:said`,
    sessionId: lane.sessionId,
    role: 'system',
    parts,
    isFinished: true,
  });
}

function wordsOf(content: OutboundContent): readonly string[] {
  if (content.kind === 'text' || content.kind === 'edit') return [content.text.text];
  if (content.kind !== 'media') return [];
  const caption = content.caption?.text ?? '';
  const names = filesOf(content).map(({ name }) => `[file ${name}]`);
  return [[...names, ...(caption === '' ? [] : [caption])].join(' ')];
}

/** The state of a part, or the worst of several. */
export type PartState = {
  readonly state: 'pending' | 'sending' | 'sent' | 'unknown' | 'failed';
  readonly problem: string | undefined;
  readonly receipts: readonly string[];
};

/** Names parts by their keys, or all those of a call: it has more than it stored if the network refused an album. */
type WantedParts = { readonly keys: readonly string[] } | Pick<ToolSendInput, 'runId' | 'key'>;

/** Reads the states of parts; unknown ones are left out. */
export const readPartStates: StoreQuery<WantedParts, readonly PartState[]> = {
  query: 'readPartStates',
  run: async (tx, wanted) => {
    const parts = tx.db.selectFrom('outbox').select(['state', 'problem', 'receipts']).orderBy('place');
    const named =
      'keys' in wanted
        ? parts.where('key', 'in', wanted.keys)
        : parts.where('runId', '=', wanted.runId).where('answer', '=', wanted.key);
    return (await named.execute()).map((row) => ({
      state: row.state,
      problem: row.problem ?? undefined,
      receipts: json.strings(row.receipts),
    }));
  },
};

// Decides which messages a tool may refer to: those in the conversation it sends to that its session has received or
// sent. An id may come from anywhere, so any other message is refused.

/** Represents the agent's own newest message; no network has such an id. */
export const lastOwn = messageId('last');

/** Where a tool sends: a conversation, and the lane whose session sends there. */
type ToolPlace = {
  readonly laneKey: string;
  readonly conversationKey: string;
  /** If set, only this run's messages may be changed. */
  readonly onlyRun?: string | undefined;
};

/** Returns the message that a new one may quote, or an action may change: a person's or the agent's own. Throws `invalid_input` otherwise. */
async function findQuoted(tx: Tx, place: ToolPlace, named: MessageId): Promise<MessageId> {
  const id = await resolve(tx, place, named);
  if ((await isHeard(tx, place, id)) || (await findOwn(tx, place, id))) return id;
  throw notHere(id);
}

/** Says whether the content changes an existing message, so that repeating it has the same result. */
export function isChange(content: StoredContent): boolean {
  const { kind } = content;
  if (kind === 'action') return content.messageId !== undefined;
  return kind === 'edit' || kind === 'delete' || kind === 'reaction';
}

/**
 * Returns the content with the id of the message that it changes, provided that the change is allowed: reactions to
 * people's messages, edits and removals of the agent's own. Throws `invalid_input` for any other.
 */
async function withTarget(tx: Tx, place: ToolPlace, content: OutboundContent): Promise<OutboundContent> {
  switch (content.kind) {
    case 'text':
    case 'media':
      return content;
    case 'reaction':
      if (await isHeard(tx, place, content.messageId)) return content;
      throw notHere(content.messageId);
    case 'action': {
      const { messageId: named } = content;
      return named === undefined ? content : { ...content, messageId: await findQuoted(tx, place, named) };
    }
    case 'edit':
    case 'delete':
      return withOwnTarget(tx, place, content);
    default:
      return content satisfies never;
  }
}

type OwnChange = Extract<OutboundContent, { kind: 'edit' | 'delete' }>;

async function withOwnTarget(tx: Tx, place: ToolPlace, change: OwnChange): Promise<OwnChange> {
  const id = await resolve(tx, place, change.messageId);
  const own = await findOwn(tx, place, id);
  if (!own) throw new ParleyError('invalid_input', `Message ${id} isn't one that you have sent here.`);
  // Others may rely on earlier messages, so a stranger can't have them changed.
  if (place.onlyRun !== undefined && own.runId !== place.onlyRun)
    throw new ParleyError('invalid_input', 'A guest can only have messages of this turn changed or removed.');
  const { kind } = json.outbound(own.content);
  if (change.kind === 'edit' && kind === 'action')
    throw new ParleyError('invalid_input', `Message ${id} is no text, so it cannot be edited.`);
  const isCaption = change.kind === 'edit' && kind === 'media';
  return { ...change, messageId: id, ...(isCaption && { isCaption }) };
}

/** Refuses an id from before the group moved: message ids start over there, so it would name a different message. */
function refuseMoved(place: ToolPlace, conversationKey: string): void {
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
