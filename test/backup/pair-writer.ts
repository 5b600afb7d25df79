/** Writes pairs of rows, each in one commit, until it is killed: half a pair in a copy means a torn copy. */
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';

const [, , dataDir = ''] = process.argv;
const db = new BetterSqlite3(join(dataDir, 'parley.db'), { timeout: 10_000 });
const one = db.prepare(`insert into "pairingTries" (name, recent) values (?, ?)`);
const pair = db.transaction((name: string) => {
  one.run(`${name}-left`, 'x'.repeat(500));
  one.run(`${name}-right`, 'x'.repeat(500));
});

const write = (count: number) => {
  pair(`${process.pid}-${count}`);
  if (count === 0) process.send?.('writing');
  // At full speed the copies would grow with every kill.
  setTimeout(write, 2, count + 1);
};
write(0);
