/**
 * Makes a backup, restores one or changes the schema, and is killed at the nth file operation, after a named step,
 * or in the middle of the change. With PostgreSQL it can also be killed before and after each write to the server or to
 * one of its programs.
 */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';

const [, , act = '', dataDir = '', killAt = '0', backup = '', databaseUrl] = process.argv;
const options = { dataDir, ...(databaseUrl !== undefined && { databaseUrl }) };
const die = () => process.kill(process.pid, 'SIGKILL');
let operations = 0;
const count = () => {
  operations += 1;
  if (operations === Number(killAt)) die();
};

/** For each named step, how the text or path that it writes ends. */
const ends: Readonly<Record<string, string>> = {
  // Of a backup: everything but its final name.
  described: '/manifest.json',
  // Of a restore: the plan, the commit in the database, the first entry moved into place.
  planned: '/plan.json',
  committing: 'commit;\n',
  moved: '/token',
};
const end = ends[killAt];
const isStep = (args: readonly unknown[]) =>
  end !== undefined && args.slice(0, 2).some((arg) => String(arg).endsWith(end));

for (const name of ['mkdir', 'open', 'rename', 'rm', 'writeFile'] as const) {
  const real = fs[name] as (...args: unknown[]) => Promise<unknown>;
  Reflect.set(fs, name, async (...args: unknown[]) => {
    count();
    const result = await real(...args);
    if (name !== 'open' && isStep(args)) die();
    return result;
  });
}
if (databaseUrl !== undefined) {
  const real = Socket.prototype.write as (...args: unknown[]) => boolean;
  Reflect.set(Socket.prototype, 'write', function (this: Socket, ...args: unknown[]) {
    count();
    const isBelow = real.apply(this, args);
    count();
    if (isStep(args)) die();
    return isBelow;
  });
}
// Modules loaded from now on get the counting functions.
syncBuiltinESMExports();

if (act === 'backup') {
  const { makeBackup } = await import('../../src/backup/make-backup.ts');
  await makeBackup({ ...options, settings: [] });
} else if (act === 'restore') {
  const { readManifest } = await import('../../src/backup/manifest.ts');
  const { restoreBackup } = await import('../../src/backup/restore.ts');
  const manifest = await readManifest(backup);
  if (manifest) await restoreBackup({ ...options, backup: { path: backup, manifest } });
} else {
  const { openLater } = await import('./later-version.ts');
  await (await openLater(dataDir)).close();
}
process.send?.({ operations });
process.disconnect?.();
