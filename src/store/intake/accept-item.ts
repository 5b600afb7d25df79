/**
 * How a platform event enters its lane: reset the session if that is due, join the bundle, enforce the cap and decide
 * when the item is due. The remaining steps are the same for every item.
 */
import type { Acceptance } from '#contracts/acceptance.ts';
import { inboxId, type SessionKey } from '#contracts/ids.ts';
import { longestWindows } from '#contracts/queue-settings.ts';
import type { StepTx, StoreQuery, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import type { LaneSpec } from '../base/keys.ts';
import { readRow } from '../base/row-access.ts';
import { hasWorkBelow } from '../children/stop-tree.ts';
import { type Bundle, fetchWaitMs, type NewItem, type PlacedItem, placeItem } from '../items/enqueue-item.ts';
import { enforceCap } from '../items/overflow.ts';
import type { OpenItem } from '../items/waiting-items.ts';
import { rememberContext, withContextFiles } from '../rows/group-context.ts';
import { openHeld } from '../rows/item.ts';
import { beginSession, followConfiguration, type Lane } from '../rows/lane.ts';
import type { AcceptEventInput, LaneViews } from './lane-views.ts';

export async function acceptItem(
  tx: StepTx,
  accepting: AcceptEventInput,
  item: NewItem,
): Promise<Acceptance> {
  const { conversationKey } = accepting.proposal;
  await accepting.views.reach(tx, conversationKey);
  const { known, open } = await lockedView(tx, accepting.views, item.lane);
  const lane = await resetIfDue(tx, known, { item, open });
  const { messageId } = accepting.proposal;
  const company = await findCompany(tx, lane, { item, accepting, open });
  const bundle = await joinBundle(tx, lane, {
    accepting,
    ...(await join(tx, company, { item, accepting, open })),
  });
  if (!bundle && !item.passesGate && company === undefined) {
    const { content, contextLimit: limit } = item;
    await rememberContext(tx, { laneKey: lane.key, conversationKey, messageId, content, limit });
    const keepsFiles = content.attachments.length > 0;
    return { kind: 'ignored', reason: 'not-mentioned', ...(keepsFiles && { keepsFiles }) };
  }
  // A part that isn't addressed to the bot yet drops nothing, sends no notice and fetches no file.
  const isHeld = bundle !== undefined && !bundle.isOpen;
  const room = isHeld ? 'room' : await enforceCap(tx, { lane, item, accepting, open });
  if (room === 'refused') return { kind: 'refused', reason: 'queue-full' };

  const { id, kind, authority } = item;
  const bringsEarlier = lane.chatKind === 'group' && kind === 'message' && !isHeld;
  const content = bringsEarlier ? await withContextFiles(tx, lane.key, item.content) : item.content;
  const isFetching = content.attachments.length > 0;
  const dueAt = await decideDue(tx, lane, { bundle, isFetching: isFetching && !isHeld, open });
  const { input, proposal, effects } = accepting;
  const placed: PlacedItem = {
    ...{ id, kind, authority, content, isHeld, isFetching, dueAt, messageId },
    source: 'platform',
    // Its comment is in the run already, so it joins that in every mode.
    reach: company === 'in-run' ? 'always' : 'mode',
    target: item.route,
    account: input.account,
    conversationKey: proposal.conversationKey,
    senderId: proposal.senderId,
    bundle: bundle?.name ?? null,
  };
  await placeItem(tx, lane, placed, effects);
  if (isHeld) return { kind: 'held' };
  // Both are the caller's own ids, which the store keeps as plain text.
  return { kind: 'accepted', inboxId: inboxId(item.id), sessionKey: lane.key as SessionKey };
}

/** Returns the locked lane with its current configuration, and its open items. */
async function lockedView(
  tx: Tx,
  views: LaneViews,
  spec: LaneSpec,
): Promise<{ readonly known: Lane; readonly open: readonly OpenItem[] }> {
  const { lane, open } = await views.take(tx, spec.key);
  return { known: await followConfiguration(tx, lane, spec.settings), open };
}

type ArrivalScene = { readonly item: NewItem; readonly open: readonly OpenItem[] };

async function resetIfDue(tx: Tx, lane: Lane, { item, open }: ArrivalScene): Promise<Lane> {
  const { resetBefore, newSessionId } = item.lane;
  const isDue = resetBefore !== undefined && lane.lastActivityAt < resetBefore && lane.runId === null;
  const isEmpty = open.every((row) => row.state !== 'waiting');
  if (!isDue || lane.sessionId === newSessionId || !isEmpty) return lane;
  // A session that is waiting for sub-agents or for a task isn't idle.
  if (await hasWorkBelow(tx, lane.sessionId)) return lane;
  await beginSession(tx, lane, newSessionId);
  return { ...lane, sessionId: newSessionId };
}

type ArrivingPart = ArrivalScene & { readonly accepting: AcceptEventInput };

/**
 * Finds the message that an arriving part belongs to: a comment of the same sender just before a forward or an album,
 * or the album just before a text. Apps send them as messages of their own, within a moment. `in-run`: the active run
 * has read it.
 */
async function findCompany(
  tx: Tx,
  lane: Lane,
  { item, accepting, open }: ArrivingPart,
): Promise<OpenItem | 'in-run' | undefined> {
  const { joinMs = 0, bundle, content } = item;
  if (joinMs === 0 || item.kind === 'command') return undefined;
  const { senderId, conversationKey } = accepting.proposal;
  const since = tx.now - joinMs;
  const isRecent = (row: OpenItem) =>
    row.senderId === senderId && row.conversationKey === conversationKey && row.createdAt >= since;
  const last = open.findLast((row) => row.kind === 'message' && row.state === 'waiting' && isRecent(row));
  const isAlbum = bundle?.isOneMessage === true;
  if (!isAlbum && content.provenance !== 'forwarded') {
    const isAfterAlbum = bundle === undefined && content.provenance === undefined;
    return isAfterAlbum && last?.bundle?.startsWith(albumPrefix) ? last : undefined;
  }
  if (last !== undefined || lane.runId === null) return last;
  const read = tx.db
    .selectFrom('inbox')
    .select('id')
    .where('laneKey', '=', lane.key)
    .where('seq', '>=', lane.nextSeq - lookBack)
    .where('runId', '=', lane.runId)
    .where('state', '=', 'taken')
    .where('senderId', '=', senderId)
    .where('conversationKey', '=', conversationKey)
    .where('createdAt', '>=', since);
  return (await read.executeTakeFirst()) === undefined ? undefined : 'in-run';
}

/** Returns the part in one bundle with its company, and passed by the gate that the company has passed. */
async function join(
  tx: Tx,
  company: OpenItem | 'in-run' | undefined,
  { item, accepting, open }: ArrivingPart,
): Promise<ArrivalScene> {
  if (company === undefined) return { item, open };
  if (company === 'in-run') return { item: { ...item, passesGate: true }, open };
  const { conversationKey } = accepting.proposal;
  const own = item.bundle && bundleKey(item.bundle.name, conversationKey);
  const name = own ?? company.bundle ?? bundleKey(`with:${company.id}`, conversationKey);
  const isCompany = (row: OpenItem) =>
    row.id === company.id || (company.bundle !== null && row.bundle === company.bundle);
  const ids = open.filter((row) => isCompany(row) && row.bundle !== name).map(({ id }) => id);
  if (ids.length > 0) await tx.db.updateTable('inbox').set({ bundle: name }).where('id', 'in', ids).execute();
  const joined = open.map((row) => (isCompany(row) ? { ...row, bundle: name } : row));
  const bundle = { name: name.slice(0, -conversationKey.length - 1), windowMs: item.joinMs ?? 0 };
  return { item: { ...item, passesGate: true, bundle: item.bundle ?? bundle }, open: joined };
}

type JoinedBundle = { readonly name: string; readonly dueAt: number; readonly isOpen: boolean };

/**
 * Joins the item's bundle, if it has one. The parts of a bundle share one gate decision: as soon as one part passes,
 * all do. A command is never part of a bundle.
 */
async function joinBundle(
  tx: Tx,
  lane: Lane,
  { item, accepting, open }: ArrivalScene & { readonly accepting: AcceptEventInput },
): Promise<JoinedBundle | undefined> {
  const { senderId, conversationKey } = accepting.proposal;
  // A lane may serve several conversations, and people's ids on different networks may be equal.
  const within = ({ name, windowMs }: Bundle) => ({ name: bundleKey(name, conversationKey), windowMs });
  if (item.kind === 'command') {
    await flush(tx, open, within({ name: debounceName(senderId), windowMs: 0 }));
    return undefined;
  }
  const rest = within({ name: splitTextName(senderId), windowMs: 0 });
  const debounced = debounceOf(lane, { item, senderId });
  const bundle =
    (item.bundle && within(item.bundle)) ??
    (hasOpen(open, rest, tx.now) ? rest : undefined) ??
    (debounced && within(debounced));
  if (!bundle) return undefined;
  const siblings = open.filter((row) => row.bundle === bundle.name);
  const isOpen =
    item.passesGate ||
    siblings.some((row) => row.state === 'waiting') ||
    (item.bundle?.isOneMessage === true && (await wasTaken(tx, lane, bundle.name)));
  const dueAt = windowEnd(tx, bundle.windowMs, siblings);
  if (siblings.length > 0) {
    // An item whose file is being fetched has its own due time.
    const ids = siblings.filter((row) => row.isFetching === 0 || row.state === 'held').map((row) => row.id);
    if (ids.length > 0) await tx.db.updateTable('inbox').set({ dueAt }).where('id', 'in', ids).execute();
    const held = siblings.filter((row) => row.state === 'held');
    if (isOpen) await openSiblings(tx, held, accepting.effects);
  }
  return { name: bundle.name, dueAt, isOpen };
}

/**
 * Returns the end of a window that each arrival restarts, but not so often that a person who keeps writing gets no
 * answer. `rows` are the items waiting in it; one stored by a clock ahead of this one sets no limit.
 */
function windowEnd(tx: Tx, windowMs: number, rows: readonly OpenItem[]): number {
  const first = Math.min(tx.now, ...rows.map(({ createdAt }) => createdAt));
  return Math.max(tx.now, Math.min(tx.now + windowMs, first + longestWindows * windowMs));
}

/** How far back in the lane, in positions, to look for an album that continues: its parts arrive within seconds. */
const lookBack = 200;

/** Says whether a part of the album was taken or answered, which means that all of it is addressed to the agent. */
async function wasTaken(tx: Tx, { key, nextSeq }: Lane, bundle: string): Promise<boolean> {
  const row = tx.db
    .selectFrom('inbox')
    .select('id')
    .where('laneKey', '=', key)
    .where('seq', '>=', nextSeq - lookBack)
    .where('bundle', '=', bundle)
    .where((eb) =>
      eb.or([
        eb('state', '=', 'taken'),
        eb.and([eb('state', '=', 'ended'), eb('outcome', '!=', 'cancelled')]),
      ]),
    );
  return (await row.executeTakeFirst()) !== undefined;
}

/** Lets held parts run; their files are fetched from now on. */
async function openSiblings(tx: Tx, held: readonly OpenItem[], { fetches }: Effects): Promise<void> {
  await openHeld(
    tx,
    held.map(({ id }) => id),
  );
  const fetching = held.filter(({ isFetching }) => isFetching === 1).map(({ id }) => id);
  if (fetching.length === 0) return;
  const dueAt = tx.now + fetchWaitMs;
  await tx.db.updateTable('inbox').set({ dueAt }).where('id', 'in', fetching).execute();
  fetches.push(...fetching);
}

/** Says whether a text that filled the limit waits for its rest, which is the same sender's next message. */
function hasOpen(open: readonly OpenItem[], { name }: Bundle, now: number): boolean {
  return open.some((row) => row.bundle === name && row.dueAt > now);
}

/** Returns the name of the bundle that the pieces of a sender's split text share. */
export function splitTextName(senderId: string): string {
  return `text:${senderId}`;
}

/** Returns a bundle's name that is unique among all conversations of a lane. */
function bundleKey(name: string, conversationKey: string): string {
  return `${name} ${conversationKey}`;
}

/** Begins the name of an album's bundle. */
const albumPrefix = 'album:';

/** Returns the debounce bundle. Debounce applies only before a first run; media and commands flush it. */
function debounceOf(lane: Lane, { item, senderId }: { item: NewItem; senderId: string }): Bundle | undefined {
  const isDebounced = lane.debounceMs > 0 && lane.runId === null && item.passesGate;
  if (!isDebounced) return undefined;
  const windowMs = item.content.attachments.length > 0 ? 0 : lane.debounceMs;
  return { name: debounceName(senderId), windowMs };
}

function debounceName(senderId: string): string {
  return `say:${senderId}`;
}

/** Makes an open bundle due, since a command completes the bundles before it. */
async function flush(tx: Tx, open: readonly OpenItem[], { name }: Bundle): Promise<void> {
  const ids = open.filter((row) => row.bundle === name && row.dueAt > tx.now).map((row) => row.id);
  if (ids.length === 0) return;
  const rows = tx.db.updateTable('inbox').set({ dueAt: tx.now }).where('id', 'in', ids);
  await rows.where('isFetching', '=', 0).execute();
}

/**
 * Decides when the row may be taken. During an active run `collect` waits for a quiet window, which each arrival
 * restarts, for at most `longestWindows` windows. The debounce before a first run is a different setting.
 */
async function decideDue(
  tx: Tx,
  lane: Lane,
  input: {
    readonly bundle: JoinedBundle | undefined;
    readonly isFetching: boolean;
    readonly open: readonly OpenItem[];
  },
): Promise<number> {
  const { bundle, isFetching, open } = input;
  if (isFetching) return tx.now + fetchWaitMs;
  if (bundle) return bundle.dueAt;
  if (lane.mode !== 'collect') return tx.now;
  const gathering = open.filter((row) => row.state === 'waiting' && row.bundle === null);
  if (lane.runId === null && !gathering.some((row) => row.dueAt > tx.now)) return tx.now;
  const dueAt = windowEnd(tx, lane.quietMs, gathering);
  await tx.db
    .updateTable('inbox')
    .set({ dueAt })
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .where('state', '=', 'waiting')
    // A bundle has its own window: if that were cut short, the bundle would be taken without its last part.
    .where('bundle', 'is', null)
    .where('isFetching', '=', 0)
    .execute();
  return dueAt;
}

/** The lane and conversation that a message enters, and its sender. */
type SplitTextOf = {
  readonly laneKey: string;
  readonly conversationKey: string;
  readonly senderId: string;
};

/** How many of the lane's messages to look back: the pieces of a text arrive within seconds. */
const splitTextLookBack = 50;

/**
 * Reads when the sender last sent a piece of a text that may continue, ms since the epoch; undefined if the lane's last
 * messages contain none.
 */
export const readSplitText: StoreQuery<SplitTextOf, number | undefined> = {
  query: 'readSplitText',
  run: async (tx, { laneKey, conversationKey, senderId }) => {
    const rows = await tx.db
      .selectFrom('inbox')
      .select(['id', 'bundle'])
      .where('laneKey', '=', laneKey)
      .orderBy('seq', 'desc')
      .limit(splitTextLookBack)
      .execute();
    const name = bundleKey(splitTextName(senderId), conversationKey);
    const piece = rows.find(({ bundle }) => bundle === name);
    if (piece === undefined) return undefined;
    // Only this item's content is read: that of fifty messages may be megabytes, and every command runs this query.
    return json.content((await readRow(tx, 'inbox', piece.id, ['content'])).content).sentAt;
  },
};
