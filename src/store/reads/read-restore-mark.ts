import { createHash } from 'node:crypto';
import type { StoreQuery } from '../base/command.ts';

/**
 * Names the restores that the database has behind it; empty without any. A position that was read under another mark says
 * nothing: its row may be gone, and another have its number.
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
