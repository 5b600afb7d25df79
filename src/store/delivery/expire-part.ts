/** Gives up parts that couldn't be delivered for too long: a person shouldn't get the answer of last month. */
import { openAlert, ownerPartPrefix } from '../alerts/alert.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { lockLanes } from '../rows/lane.ts';
import { failAnswer } from './end-part.ts';
import { isMarkPart } from './mark-part.ts';
import { lockConversation, removePart } from './part.ts';

/** Ages at which undelivered parts are given up, ms: the agent's words, Parley's own, and reactions. */
export type ExpiryLimits = { readonly answer: number; readonly notice: number; readonly reaction: number };

type WaitingPart = {
  readonly key: string;
  readonly state: string;
  readonly purpose: string;
  readonly content: string;
  readonly sendingAt: number | null;
  readonly createdAt: number;
};

/** Says whether a part has waited too long. One that may have arrived doesn't expire: it becomes `unknown`. */
export function hasExpired(
  { state, sendingAt, createdAt, ...part }: WaitingPart,
  { limits, now }: { readonly limits: ExpiryLimits; readonly now: number },
): boolean {
  if (state !== 'pending' || sendingAt !== null) return false;
  return now - createdAt > limits[kindOf(part)];
}

function kindOf({
  key,
  purpose,
  content,
}: Pick<WaitingPart, 'key' | 'purpose' | 'content'>): keyof ExpiryLimits {
  const { kind } = json.outbound(content);
  if (kind === 'reaction') return 'reaction';
  // An edit or a removal changes what people see for as long as it is missing.
  const isChange = kind === 'edit' || kind === 'edit-part' || kind === 'delete';
  return purpose === 'notice' && !isChange && !key.startsWith(ownerPartPrefix) ? 'notice' : 'answer';
}

/**
 * Ends the part and the rest of its answer as failed, and tells the agent and the owner. The caller holds the locks of
 * its lane and its conversation.
 */
export async function expirePart(
  tx: Tx,
  {
    key,
    conversationKey,
    createdAt,
  }: Pick<WaitingPart, 'key' | 'createdAt'> & { readonly conversationKey: string },
): Promise<void> {
  const hours = Math.round((tx.now - createdAt) / 3_600_000);
  await failAnswer(tx, { partKey: key, problem: `it expired: it couldn't be delivered for ${hours} h` });
  if (!key.startsWith(ownerPartPrefix))
    await openAlert(tx, { kind: 'delivery-expired', subject: conversationKey });
}

/** How many conversations are read at a time. */
const page = 50;

/** Reads conversations with parts that have expired, whether or not anything still delivers there. */
export const readExpired: StoreQuery<ExpiryLimits, readonly string[]> = {
  query: 'readExpired',
  usesClock: true,
  run: async (tx, limits) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select('conversationKey')
      .distinct()
      .where(isOpenPart())
      .where('state', '=', 'pending')
      .where('sendingAt', 'is', null)
      .where('purpose', '<>', 'preview')
      .where('createdAt', '<', tx.now - Math.max(limits.answer, limits.notice, limits.reaction))
      .limit(page)
      .execute();
    return rows.map(({ conversationKey }) => conversationKey);
  },
};

/** Gives up what has expired in a conversation. Safe to repeat: an ended part isn't looked at again. */
export const expireParts: StoreCommand<
  { readonly conversationKey: string; readonly limits: ExpiryLimits },
  void
> = {
  name: 'expireParts',
  run: async (tx, { conversationKey, limits }) => {
    const waiting = tx.db
      .selectFrom('outbox')
      .select(['key', 'state', 'purpose', 'content', 'sendingAt', 'createdAt', 'laneKey'])
      .where('conversationKey', '=', conversationKey)
      .where(isOpenPart())
      .where('purpose', '<>', 'preview')
      .orderBy('place')
      .limit(page);
    await lockLanes(
      tx,
      (await waiting.execute()).flatMap(({ laneKey }) => laneKey ?? []),
    );
    await lockConversation(tx, conversationKey);
    for (;;) {
      // The end of one part ends the rest of its answer.
      const part = (await waiting.execute()).find((row) => hasExpired(row, { limits, now: tx.now }));
      if (!part) return;
      if (isMarkPart(part.key)) await removePart(tx, part.key);
      else await expirePart(tx, { ...part, conversationKey });
    }
  },
};
