// Makes the fixture of a release: node test/releases/make-fixture.mjs 0.2.0
// It plays test/releases/<version>/play.mjs inside the tree of the release's own commit, once on SQLite and once on
// PostgreSQL, and stores both databases beside the play. Fixtures never change once a release is out.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import pg from 'pg';
import { findPostgres } from '../../scripts/bootstrap.mjs';
import { startPostgres } from '../../scripts/test-postgres.mjs';
import { releases } from './releases.mjs';

const [version = ''] = process.argv.slice(2);
const release = releases.find((each) => each.version === version);
if (!release) throw new Error(`Name one of ${releases.map((each) => each.version).join(', ')}.`);
const root = join(import.meta.dirname, '../..');
const own = join(import.meta.dirname, version);
const tree = mkdtempSync(join(tmpdir(), 'parley-release-'));
const postgres = await startPostgres();
try {
  execFileSync('sh', ['-c', `git -C '${root}' archive ${release.commit} | tar -x -C '${tree}'`]);
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
  cpSync(own, join(tree, 'test/releases', version), { recursive: true });
  const { play } = await import(pathToFileURL(join(tree, 'test/releases', version, 'play.mjs')).href);
  await play({ env: {}, count: countSqlite, dump: dumpSqlite });
  await play({ env: { DATABASE_URL: postgres.url }, count: countPostgres, dump: dumpPostgres });
} finally {
  await postgres.stop();
  rmSync(tree, { recursive: true, force: true });
}

function countSqlite(sql, dataDir) {
  const db = new BetterSqlite3(join(dataDir, 'parley.db'), { readonly: true });
  const { length } = db.prepare(sql).all();
  db.close();
  return length;
}

function dumpSqlite(dataDir) {
  const copy = join(tree, 'copy.db');
  const db = new BetterSqlite3(join(dataDir, 'parley.db'));
  db.prepare('vacuum into ?').run(copy);
  db.close();
  writeFileSync(join(own, 'parley.db.gz'), gzipSync(readFileSync(copy), { level: 9 }));
}

async function countPostgres(sql) {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  const { rows } = await client.query(sql);
  await client.end();
  return rows.length;
}

function dumpPostgres() {
  const args = ['--inserts', '--no-owner', '--no-privileges', '--dbname', postgres.url];
  const dump = execFileSync(findPostgres('pg_dump'), args, { encoding: 'utf8' });
  // Later versions of pg_dump add commands that only psql knows, and settings that older servers don't.
  const lines = dump
    .split('\n')
    .filter((line) => !/^(\\|--|SET |SELECT pg_catalog\.set_config|$)/.test(line));
  writeFileSync(join(own, 'parley.sql.gz'), gzipSync(`${lines.join('\n')}\n`, { level: 9 }));
}
