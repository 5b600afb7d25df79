import { fileKeyOf, isSameFiles, type StoredAttachment } from '#contracts/attachment.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, StoreQuery } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isFetchingItem, isOpenItem } from '../base/index-predicates.ts';
import { type IncomingFile, json } from '../base/json.ts';
import { changeRow, findRow } from '../base/row-by-key.ts';
import { lockLane } from '../rows/lane-row.ts';

export type PendingFetch = {
  readonly inboxId: string;
  readonly route: ReplyRoute;
  /** The sender's network and id there. */
  readonly sender: string;
  readonly attachments: readonly IncomingFile[];
};

/** Reads an item's attachments that still need fetching; undefined if there are none or nothing awaits them. */
export const readPendingFetch: StoreQuery<{ readonly inboxId: string }, PendingFetch | undefined> = {
  query: 'readPendingFetch',
  run: async (tx, { inboxId }) => {
    const row = await tx.db
      .selectFrom('inbox')
      .select(['route', 'content'])
      .where('id', '=', inboxId)
      .where(isFetchingItem())
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const { attachments, sender } = json.content(row.content);
    const route = json.route(row.route);
    return { inboxId, route, sender: `${route.channel}:${sender.id}`, attachments };
  },
};

export type FetchedInput = {
  readonly inboxId: string;
  /** The files as `readPendingFetch` returned them: an edit may have replaced them since. */
  readonly attachments: readonly IncomingFile[];
  readonly stored: readonly StoredAttachment[];
  /** How long the message waits, from its arrival, for the rest of its album, ms. */
  readonly joinMs: number;
};

/** Step 2, fetch: the files are on disk (or given up), so the message becomes due. Repeating it changes nothing. */
export const storeFetched: StoreCommand<FetchedInput, Effects> = {
  name: 'storeFetched',
  run: async (tx, { inboxId, attachments, stored, joinMs }) => {
    const effects = noEffects();
    const seen = await findRow(tx, 'inbox', inboxId, ['laneKey']);
    if (!seen) return effects;
    const lane = await lockLane(tx, seen.laneKey);
    const row = await tx.db
      .selectFrom('inbox')
      .select(['content', 'bundle', 'createdAt'])
      .where('id', '=', inboxId)
      .where('isFetching', '=', 1)
      .executeTakeFirst();
    if (!lane || !row) return effects;
    const content = json.content(row.content);
    const kept = stillNamed(content.attachments, { attachments, stored });
    // The sweep has the new version's files fetched.
    if (kept === undefined) return effects;
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
    await changeRow(tx, 'inbox', inboxId, {
      content: JSON.stringify({ ...content, stored: kept }),
      isFetching: 0,
      dueAt,
    });
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
