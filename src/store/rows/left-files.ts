/** Files that remain with a network and won't be fetched, since their message was never admitted. */
import { parseJson } from '#channel-kit/parse-json.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { newRowId } from '../base/keys.ts';

/** The files of one message; `at` in ms since the epoch. */
export type LeftFiles = {
  readonly id: string;
  readonly route: ReplyRoute;
  readonly files: readonly AttachmentRef[];
  readonly at: number;
};

/** Records that a message's files won't be fetched, in the step that gives the message up. */
export async function leaveFiles(
  tx: Tx,
  { route, files }: Pick<LeftFiles, 'route' | 'files'>,
): Promise<void> {
  if (files.length === 0) return;
  const row = { id: newRowId(), route: JSON.stringify(route), files: JSON.stringify(files), at: tx.now };
  await tx.db.insertInto('leftFiles').values(row).execute();
}

/** Reads the files that were left first. */
export const readLeftFiles: StoreQuery<{ readonly limit: number }, readonly LeftFiles[]> = {
  query: 'readLeftFiles',
  run: async (tx, { limit }) => {
    const rows = await tx.db.selectFrom('leftFiles').selectAll().orderBy('id').limit(limit).execute();
    return rows.flatMap(({ id, route, files, at }) => {
      try {
        // Only the store writes this column.
        return [{ id, at, route: json.route(route), files: parseJson(files) as readonly AttachmentRef[] }];
      } catch {
        // A damaged row must not keep the others from being read.
        return [];
      }
    });
  },
};

/** Forgets files that the network was asked to remove. Repeating it changes nothing. */
export const forgetLeftFiles: StoreCommand<{ readonly ids: readonly string[] }, void> = {
  name: 'forgetLeftFiles',
  run: async (tx, { ids }) => {
    await tx.db.deleteFrom('leftFiles').where('id', 'in', ids).execute();
  },
};
