import type { Tx } from '../base/command.ts';
import type { InboxContent } from '../base/json.ts';
import { leaveContextFiles } from './context-files.ts';
import { takeSeq } from './lane-row.ts';

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
