/**
 * Makes a backup, restores one or changes the schema, and is killed at the nth operation on files, or in the change. With
 * PostgreSQL also before and after each write to the server or to one of its programs.
 */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';

const [, , act = '', dataDir = '', killAt = '0', backup = '', databaseUrl] = process.argv;
const options = { dataDir, ...(databaseUrl !== undefined && { databaseUrl }) };
let left = Number(killAt);
const count = () => {
  left -= 1;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
};
for (const name of ['mkdir', 'open', 'rename', 'rm', 'writeFile'] as const) {
  const real = fs[name] as (...args: unknown[]) => unknown;
  Reflect.set(fs, name, (...args: unknown[]) => {
    count();
    return real(...args);
  });
}
if (databaseUrl !== undefined) {
  const real = Socket.prototype.write as (...args: unknown[]) => boolean;
  Reflect.set(Socket.prototype, 'write', function (this: Socket, ...args: unknown[]) {
    count();
    const isBelow = real.apply(this, args);
    count();
    return isBelow;
  });
}
// Modules that are loaded after this get the counting ones.
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
process.send?.({ operations: Number(killAt) - left });
process.disconnect?.();
