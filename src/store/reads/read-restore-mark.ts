import { createHash } from 'node:crypto';
import type { StoreQuery } from '../base/command.ts';

/**
 * Reads a mark that identifies the restores that the database has been through; empty if there were none. A position
 * that was read under another mark is meaningless: its row may be gone, and another row may have its number.
 */
export const readRestoreMark: StoreQuery<Record<never, never>, string> = {
  query: 'readRestoreMark',
  run: async (tx) => {
    const restores = await tx.db.selectFrom('restores').select('id').orderBy('id').execute();
    if (restores.length === 0) return '';
    const ids = restores.map(({ id }) => id).join();
    return createHash('sha256').update(ids).digest('base64url').slice(0, 12);
  },
};
