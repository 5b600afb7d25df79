import crypto from 'node:crypto';

/**
 * Returns a new id for a row. It begins with the time (RFC 9562, version 7), so that rows written together are adjacent
 * in every index of such ids, however long the history. It isn't secret: values that must not be guessed are made with
 * `randomUUID`.
 */
export function newRowId(): string {
  // Only later minor versions of Node.js 24 have it.
  return crypto.randomUUIDv7?.() ?? crypto.randomUUID();
}
