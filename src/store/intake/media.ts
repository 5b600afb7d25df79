import {
  fileKeyOf,
  isSameFiles,
  pathsOf,
  type StoredAttachment,
  type StoredFile,
} from '#contracts/attachment.ts';
import type { MessagePart } from '#contracts/message.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StepTx, StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isFetchingItem, isOpenItem, isOpenPart } from '../base/index-predicates.ts';
import { type InboxContent, type IncomingFile, json } from '../base/json.ts';
import { changeRow, findRow } from '../base/row-access.ts';
import { insertNotice } from '../delivery/part.ts';
import { describeAttachment, type FileNotice, isBeingRead } from '../lanes/file-parts.ts';
import { summarized } from '../rows/item.ts';
import { lockLane, lockLanes } from '../rows/lane.ts';

/** A message whose files are to be fetched and read. */
export type PendingFetch = {
  readonly inboxId: string;
  readonly route: ReplyRoute;
  /** The sender's network and id there. */
  readonly sender: string;
  readonly attachments: readonly IncomingFile[];
  /** The files, if they are fetched and some are still to be read. */
  readonly stored: readonly StoredAttachment[] | undefined;
  readonly isDirect: boolean;
};

/** Reads an item's attachments that still need fetching or reading; undefined if there are none or nothing awaits them. */
export const readPendingFetch: StoreQuery<{ readonly inboxId: string }, PendingFetch | undefined> = {
  query: 'readPendingFetch',
  run: async (tx, { inboxId }) => {
    const row = await tx.db
      .selectFrom('inbox')
      .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
      .select(['inbox.route', 'inbox.content', 'lanes.chatKind'])
      .where('inbox.id', '=', inboxId)
      .where(isFetchingItem())
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const { attachments, stored, sender } = json.content(row.content);
    const route = json.route(row.route);
    const isDirect = row.chatKind === 'dm';
    return { inboxId, route, sender: `${route.channel}:${sender.id}`, attachments, stored, isDirect };
  },
};

export type FetchedInput = {
  readonly inboxId: string;
  /** The files as `readPendingFetch` returned them: an edit may have replaced them since. */
  readonly attachments: readonly IncomingFile[];
  readonly stored: readonly StoredAttachment[];
  /** How long the message waits, from its arrival, for the rest of its album, ms. */
  readonly joinMs: number;
  /** How long it waits from now for files that are still being read, ms. */
  readonly readMs?: number;
  /** Notices to its sender, once they have been read. */
  readonly notices?: readonly FileNotice[];
};

/**
 * Step 2, fetch: the files are on disk (or given up), so the message becomes due, or is once they are read: then this
 * step is called again, with what was read. Repeating it changes nothing.
 */
export const storeFetched: StoreCommand<FetchedInput, Effects> = {
  name: 'storeFetched',
  run: async (tx, { inboxId, attachments, stored, joinMs, readMs = 0, notices = [] }) => {
    const effects = noEffects();
    const seen = await findRow(tx, 'inbox', inboxId, ['laneKey']);
    if (!seen) return effects;
    const lane = await lockLane(tx, seen.laneKey);
    const row = await tx.db
      .selectFrom('inbox')
      .select(['content', 'bundle', 'createdAt', 'route'])
      .where('id', '=', inboxId)
      .where('isFetching', '=', 1)
      .executeTakeFirst();
    if (!lane || !row) return effects;
    const content = json.content(row.content);
    const kept = stillNamed(content.attachments, { attachments, stored });
    // The sweep has the new version's files fetched.
    if (kept === undefined) return effects;
    const changed = JSON.stringify({ ...content, stored: kept });
    if (kept.some(isBeingRead)) {
      await changeRow(tx, 'inbox', inboxId, { content: changed, dueAt: tx.now + readMs });
      return effects;
    }
    for (const notice of notices)
      effects.deliveries.push(await insertNotice(tx, { ...notice, route: json.route(row.route) }));
    const siblings =
      row.bundle === null
        ? []
        : await tx.db
            .selectFrom('inbox')
            .select('dueAt')
            .where('laneKey', '=', lane.key)
            .where('bundle', '=', row.bundle)
            .where('isFetching', '=', 0)
            .where(isOpenItem())
            .execute();
    // An album still waits for its other parts (they arrive 0.5 to 2.5 s apart); a single message is due now.
    const joinUntil =
      row.bundle === null ? tx.now : Math.max(row.createdAt + joinMs, ...siblings.map((s) => s.dueAt));
    const dueAt = Math.max(tx.now, joinUntil);
    await changeRow(tx, 'inbox', inboxId, { content: changed, isFetching: 0, dueAt });
    effects.wakes.push({ laneKey: lane.key, class: lane.class, delayMs: dueAt - tx.now });
    if (lane.runId !== null) effects.arrivals.push(lane.key);
    return effects;
  },
};

/** Returns the fetched files that the message still names; undefined if it names others, too. */
function stillNamed(
  named: readonly IncomingFile[],
  { attachments, stored }: Pick<FetchedInput, 'attachments' | 'stored'>,
): readonly StoredAttachment[] | undefined {
  if (isSameFiles(named, attachments)) return stored;
  const placeOf = (file: IncomingFile) => JSON.stringify([fileKeyOf(file), file.of]);
  const fetched = new Map(attachments.map((file, index) => [placeOf(file), stored[index]]));
  const kept = named.flatMap((file) => fetched.get(placeOf(file)) ?? []);
  return kept.length === named.length ? kept : undefined;
}

// Decides which files of messages may be removed. A file's row is marked as expired before the file is removed, so a
// crash in between leaves a file that no row names, which is removed later.

/** A file in the media folder, with the id of the item that it came with, or an id with `outgoingPrefix`. */
export type MediaFile = { readonly inboxId: string; readonly name: string };

/** Prefix of the ids of files that were copied to be sent. No inbox row has such an id. */
export const outgoingPrefix = 'sent-';

/** `unnamed`: no row names it. `needed`: a waiting message or an unfinished run needs it, or it is still to be sent. */
type MediaUse = 'unnamed' | 'needed' | 'idle';

/** Reads each file's use, in order. */
export const readMediaUse: StoreQuery<{ readonly files: readonly MediaFile[] }, readonly MediaUse[]> = {
  query: 'readMediaUse',
  run: async (tx, { files }) => {
    const uses: MediaUse[] = [];
    for (const file of files) uses.push((await findUse(tx, file)).use);
    return uses;
  },
};

/**
 * Marks the files as expired in their rows and the transcript, unless they are needed now. Returns the names of those
 * that may be removed. Repeating it returns none of them, because no row names them any more.
 */
export const expireMedia: StoreCommand<{ readonly files: readonly MediaFile[] }, readonly string[]> = {
  name: 'expireMedia',
  run: async (tx, { files }) => {
    const ids = [...new Set(files.map(({ inboxId }) => inboxId))];
    const rows = await tx.db.selectFrom('inbox').select('laneKey').where('id', 'in', ids).execute();
    await lockLanes(tx, [...new Set(rows.map(({ laneKey }) => laneKey))].sort());
    const expired: string[] = [];
    for (const file of files) {
      const found = await findUse(tx, file);
      if (found.use !== 'idle') continue;
      if (found.content) await markExpired(tx, file, found);
      expired.push(file.name);
    }
    return expired;
  },
};

type MediaReference = {
  readonly use: 'needed' | 'idle';
  readonly content: InboxContent;
  readonly stored: readonly StoredAttachment[];
  readonly transcriptId: string | null;
};

/** A file that only the outbox may name, or that no row names. */
type OutgoingReference = { readonly use: 'needed' | 'idle' | 'unnamed'; readonly content?: undefined };

async function findUse(tx: Tx, file: MediaFile): Promise<MediaReference | OutgoingReference> {
  if (file.inboxId.startsWith(outgoingPrefix))
    return { use: (await isToBeSent(tx, file)) ? 'needed' : 'idle' };
  const row = await tx.db
    .selectFrom('inbox')
    .leftJoin('runs', 'runs.id', 'inbox.runId')
    .select(['inbox.state', 'inbox.outcomeReason', 'inbox.runId', 'inbox.content', 'inbox.transcriptId'])
    .select('runs.state as runState')
    .where('inbox.id', '=', file.inboxId)
    .executeTakeFirst();
  const content = row && json.content(row.content);
  const stored = content?.stored ?? [];
  if (!content || !stored.some((each) => isFile(each, file))) return { use: 'unnamed' };
  const mayReturn = row.outcomeReason === summarized && row.runId === null;
  const isOver = row.state === 'ended' && !mayReturn && (row.runState ?? 'finished') === 'finished';
  const use = isOver && !(await isToBeSent(tx, file)) ? 'idle' : 'needed';
  return { use, content, stored, transcriptId: row.transcriptId };
}

function isFile(stored: StoredAttachment, { name }: MediaFile): stored is StoredFile {
  return stored.kind === 'stored' && pathsOf(stored).includes(name);
}

async function isToBeSent(tx: Tx, { name }: MediaFile): Promise<boolean> {
  const part = tx.db
    .selectFrom('outbox')
    .select('key')
    .where(isOpenPart())
    .where('content', 'like', `%${name}%`);
  return (await part.executeTakeFirst()) !== undefined;
}

/** The text that was read from a file stays, unless it may be looked at once. */
async function markExpired(tx: StepTx, file: MediaFile, { content, stored, transcriptId }: MediaReference) {
  const expired = stored.find((each) => isFile(each, file));
  if (expired === undefined || expired.kind !== 'stored') return;
  const gone: StoredAttachment = { kind: 'missing', name: expired.name, reason: tx.texts.fileExpired };
  const marked = stored.map((each) => (each === expired ? gone : each));
  await changeRow(tx, 'inbox', file.inboxId, { content: JSON.stringify({ ...content, stored: marked }) });
  const message = await findRow(tx, 'transcript', transcriptId, ['parts']);
  if (!message) return;
  const replaced: MessagePart = { type: 'text', data: { text: describeAttachment(gone) ?? '' } };
  const parts = json.parts(message.parts).map((part): MessagePart => {
    if (part.type === 'binary') return pathsOf(expired).includes(part.data.path) ? replaced : part;
    const isText = part.type === 'text' && part.data.file === expired.path;
    return isText && expired.isViewOnce ? replaced : part;
  });
  await changeRow(tx, 'transcript', transcriptId, { parts: JSON.stringify(parts) });
}
