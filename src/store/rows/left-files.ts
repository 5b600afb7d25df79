/** Files that lie with a network and that nobody will fetch: their message was never let in. */
import { parseJson } from '#channel-kit/parse-json.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { newRowId } from '../base/row-id.ts';

/** The files of one message; `at` in ms since the epoch. */
export type LeftFiles = {
  readonly id: string;
  readonly route: ReplyRoute;
  readonly files: readonly AttachmentRef[];
  readonly at: number;
};

/** Notes that nobody will fetch the files of a message, in the step that gives the message up. */
export async function leaveFiles(
  tx: Tx,
  { route, files }: Pick<LeftFiles, 'route' | 'files'>,
): Promise<void> {
  if (files.length === 0) return;
  const row = { id: newRowId(), route: JSON.stringify(route), files: JSON.stringify(files), at: tx.now };
  await tx.db.insertInto('leftFiles').values(row).execute();
}

/** Reads those that were left first. */
export const readLeftFiles: StoreQuery<{ readonly limit: number }, readonly LeftFiles[]> = {
  query: 'readLeftFiles',
  run: async (tx, { limit }) => {
    const rows = await tx.db.selectFrom('leftFiles').selectAll().orderBy('id').limit(limit).execute();
    return rows.flatMap(({ id, route, files, at }) => {
      try {
        // Our own words.
        return [{ id, at, route: json.route(route), files: parseJson(files) as readonly AttachmentRef[] }];
      } catch {
        // Something has damaged the row: the others are read without it.
        return [];
      }
    });
  },
};

/** The network was asked to remove them. Repeating it changes nothing. */
export const forgetLeftFiles: StoreCommand<{ readonly ids: readonly string[] }, void> = {
  name: 'forgetLeftFiles',
  run: async (tx, { ids }) => {
    await tx.db.deleteFrom('leftFiles').where('id', 'in', ids).execute();
  },
};
