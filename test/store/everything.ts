import type { StoreQuery } from '../../src/store/base/command.ts';
import type { Tables } from '../../src/store/base/tables.ts';

/** Tables that a message and its answer write to. */
const tables: readonly (keyof Tables)[] = [
  'accounts',
  'conversations',
  'ledger',
  'lanes',
  'inbox',
  'sessions',
  'transcript',
  'runs',
  'modelCalls',
  'sessionUsage',
  'outbox',
  'receipts',
];

/** Reads all rows of messages, so that a half-done step can't go unnoticed. */
export const everything: StoreQuery<Record<never, never>, string> = {
  query: 'everything',
  run: async (tx) => {
    const rows = await Promise.all(tables.map((table) => tx.db.selectFrom(table).selectAll().execute()));
    return JSON.stringify(
      rows.map((ofTable) => ofTable.map((row) => JSON.stringify(row)).sort()),
      undefined,
      1,
    );
  },
};
