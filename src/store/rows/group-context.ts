/**
 * Files of remembered messages. The newest come with the next message that calls the agent: they are fetched with it
 * and shown as the earlier message's, as those of a quote are. All others stay a line, and their network is asked to
 * remove them as soon as nothing can call for them.
 */
import { fileKeyOf } from '#contracts/attachment.ts';
import { cleanLabel } from '../../texts/untrusted-text.ts';
import type { Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { type InboxContent, type IncomingFile, json } from '../base/json.ts';
import { routeOfKey } from '../base/keys.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { takeSeq } from './lane.ts';
import { leaveFiles } from './left-files.ts';

/** How many files of earlier messages come with one message. */
const maxFiles = 4;

/** Reads the lane's remembered messages that no run has been shown, each as stored, oldest first. */
export async function readUnshown(tx: Tx, laneKey: string): Promise<readonly string[]> {
  return (await unshownContext.all(tx, { laneKey })).map(({ content }) => content);
}

const unshownContext = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db
    .selectFrom('groupContext')
    .select('content')
    .where('laneKey', '=', of.laneKey)
    .where('shownInRun', 'is', null)
    .orderBy('seq'),
);

/** Adds the newest files of the lane's remembered messages, unless they come with another waiting message. */
export async function withContextFiles(
  tx: Tx,
  laneKey: string,
  content: InboxContent,
): Promise<InboxContent> {
  const earlier = (await readUnshown(tx, laneKey)).flatMap((entry) => showableFiles(json.content(entry)));
  if (earlier.length === 0) return content;
  const known = new Set([...content.attachments, ...(await readAwaited(tx, laneKey))].map(fileKeyOf));
  const files = earlier.filter((file) => !known.has(fileKeyOf(file))).slice(-maxFiles);
  return { ...content, attachments: [...content.attachments, ...files] };
}

/** A video is a line to a model anyway, and its download would delay the answer. One look wasn't meant for the bot. */
function showableFiles({ attachments, sender, provenance }: InboxContent): readonly IncomingFile[] {
  const by = cleanLabel(sender.name);
  const of = by === '' ? 'an earlier message' : `an earlier message by ${by}`;
  return (
    attachments
      .filter((file) => file.kind !== 'video' && !file.isViewOnce)
      // The beginning of a thread is a quote; any other one only says what an earlier message was about.
      .filter((file) => file.of === undefined || provenance === 'quoted')
      .map((file) => ({ of, ...file }))
  );
}

/** Reads the files that come with the lane's waiting messages. */
async function readAwaited(tx: Tx, laneKey: string): Promise<readonly IncomingFile[]> {
  const rows = await tx.db
    .selectFrom('inbox')
    .select('content')
    .where('laneKey', '=', laneKey)
    .where(isOpenItem())
    .execute();
  return rows.flatMap(({ content }) => json.content(content).attachments);
}

type Forgotten = { readonly conversationKey: string; readonly content: string };

/** Leaves the files of messages that are no longer remembered, except those that come with a message. */
export async function leaveContextFiles(
  tx: Tx,
  laneKey: string,
  {
    entries,
    taken = [],
  }: { readonly entries: readonly Forgotten[]; readonly taken?: readonly InboxContent[] },
): Promise<void> {
  const left = entries.map(({ conversationKey, content }) => ({
    conversationKey,
    files: json.content(content).attachments,
  }));
  if (left.every(({ files }) => files.length === 0)) return;
  const awaited = [...(await readAwaited(tx, laneKey)), ...taken.flatMap(({ attachments }) => attachments)];
  const known = new Set(awaited.map(fileKeyOf));
  for (const { conversationKey, files } of left)
    await leaveFiles(tx, {
      route: routeOfKey(conversationKey),
      files: files.filter((file) => !known.has(fileKeyOf(file))),
    });
}

type ContextEntry = {
  readonly laneKey: string;
  /** Empty for the gateway's own notes, which can't be edited. */
  readonly conversationKey: string;
  readonly messageId: string | undefined;
  readonly content: InboxContent;
  readonly limit: number;
};

/** Keeps an unmentioned message for the next triggering one; only the newest `limit` are kept. */
export async function rememberContext(
  tx: Tx,
  { laneKey, conversationKey, messageId, content, limit }: ContextEntry,
): Promise<void> {
  const seq = await takeSeq(tx, laneKey);
  await tx.db
    .insertInto('groupContext')
    .values({ laneKey, seq, conversationKey, messageId: messageId ?? null, content: JSON.stringify(content) })
    .execute();
  const oldest = await tx.db
    .selectFrom('groupContext')
    .select('seq')
    .where('laneKey', '=', laneKey)
    .where('shownInRun', 'is', null)
    .orderBy('seq', 'desc')
    .offset(limit)
    .limit(1)
    .executeTakeFirst();
  if (!oldest) return;
  await forgetContext(tx, { laneKey, before: oldest.seq + 1 });
}

/** Forgets the lane's messages that no run has been shown, up to the one before `before`. */
export async function forgetContext(
  tx: Tx,
  { laneKey, before }: { readonly laneKey: string; readonly before: number },
): Promise<void> {
  const entries = await tx.db
    .deleteFrom('groupContext')
    .where('laneKey', '=', laneKey)
    .where('shownInRun', 'is', null)
    .where('seq', '<', before)
    .returning(['conversationKey', 'content'])
    .execute();
  await leaveContextFiles(tx, laneKey, { entries });
}
