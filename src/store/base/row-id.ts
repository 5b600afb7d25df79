import crypto from 'node:crypto';

/**
 * A new id for a row. It begins with the time (RFC 9562, version 7), so that rows that are written together
 * lie together in each index of such ids, however long the history behind them. No secret: what nobody may
 * guess is made of `randomUUID`.
 */
export function newRowId(): string {
  // Node.js 24 knows them from one of its minor versions on.
  return crypto.randomUUIDv7?.() ?? crypto.randomUUID();
}
