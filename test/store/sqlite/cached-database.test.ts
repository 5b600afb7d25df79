import BetterSqlite3 from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { cachedStatements } from '../../../src/store/sqlite/direct-database.ts';

it('prepares a statement once, however many were prepared before it', () => {
  const db = new BetterSqlite3(':memory:');
  onTestFinished(() => void db.close());
  const prepare = cachedStatements(db);
  for (let n = 0; n < 1_000; n += 1) prepare(`select ${n}`);
  expect(prepare('select 1000')).toBe(prepare('select 1000'));
});
