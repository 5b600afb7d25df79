import type { Tx } from '../base/command.ts';
import type { InboxContent } from '../base/json.ts';
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
  await tx.db
    .deleteFrom('groupContext')
    .where('laneKey', '=', laneKey)
    .where('shownInRun', 'is', null)
    .where('seq', '<=', oldest.seq)
    .execute();
}
