import type { Mutant } from './mutants.ts';

const backups = 'test/backup/backup.test.ts';
const kills = 'test/backup/kills-postgres.test.ts';
const postgres = 'test/backup/postgres.test.ts';
const upgrade = 'test/backup/upgrade.test.ts';
const schema = 'test/store/schema.test.ts';
const endPartsAfterRestore = 'test/store/delivery/end-parts-after-restore.test.ts';

/** Broken variants of backups, restores and changes of the schema. */
export const backupMutants: readonly Mutant[] = [
  {
    name: 'a schema that nobody compares',
    invariant: 'no start works with a schema that its steps have not made',
    edit: { in: 'migrate', find: 'misfits.length > 0', replace: 'false' },
    test: { file: schema, name: 'is refused with a missing table' },
  },
  {
    name: 'a later version that may have taken away',
    invariant: 'a later version may have added to the schema, and nothing else',
    edit: { in: 'compareCatalogue', find: 'of expected)', replace: 'of mayHaveMore ? [] : expected)' },
    test: { file: schema, name: 'may have more in it once a later version' },
  },
  {
    name: 'restore of an unchecked backup',
    invariant: 'only a backup whose files are as they were written replaces anything',
    edit: { in: 'verifyBackup', find: 'copy.sha256 !== sha256', replace: 'false' },
    test: { file: backups, name: 'replaces nothing by a backup that was changed' },
    isSample: true,
  },
  {
    name: 'restore of files that nobody listed',
    invariant: 'a restore brings back only what its backup lists',
    edit: { in: 'refuseStrangers', find: '!listed.has(file)', replace: 'false' },
    test: { file: backups, name: 'is refused for a file that the list lacks, and replaces nothing' },
  },
  {
    name: 'restore of an entry outside the data folder',
    invariant: 'a restore writes nothing outside the data folder',
    edit: { in: 'refuseUnsafeNames', find: '!isInside(name) || /[\\\\/]/.test(name) || ', replace: '' },
    test: { file: backups, name: 'is refused for an entry above the data folder, and replaces nothing' },
  },
  {
    name: 'restore of a dump without an end',
    invariant: 'a restore on PostgreSQL commits once the dump was read to its end',
    edit: { in: 'feed', find: 'await isWhole;', replace: '' },
    test: { file: postgres, name: 'a restore that is killed, or that finds no end' },
    needsPostgres: true,
  },
  {
    name: 'a restore that the database does not name',
    invariant: 'each start on a restored database knows that it was restored',
    edit: { in: 'restorePostgres', find: 'noteRestore(schema, note)', replace: "''" },
    test: { file: postgres, name: 'a backup comes back in one transaction' },
    needsPostgres: true,
  },
  {
    name: 'restore planned behind its commit',
    invariant: 'a restored database never stands beside the files of before, whenever the restore is killed',
    edit: {
      in: 'restorePostgres',
      find: 'isReady, decide }),',
      replace: 'isReady, decide: async () => undefined }),',
    },
    also: [
      {
        in: 'restorePostgres',
        find: 'await Promise.all(steps);',
        replace: 'await Promise.all(steps); await decide();',
      },
    ],
    test: { file: kills, name: 'no killed backup counts' },
    needsPostgres: true,
  },
  {
    name: 'restore that counts without its commit',
    invariant: 'restored files never stand beside the database of before',
    edit: { in: 'isDecided', find: 'return hasRestore(databaseUrl, id);', replace: 'return true;' },
    test: { file: kills, name: 'no killed backup counts' },
    needsPostgres: true,
  },
  {
    name: 'backup across a restore',
    invariant: 'a backup is of one state',
    edit: { in: 'makeBackup', find: '(await seenUndisturbed(dataDir)) !== seen', replace: 'false' },
    test: { file: backups, name: 'is made of one state only' },
  },
  {
    name: 'positions of before a restore',
    invariant: 'a client reads a restored conversation anew, not on from a position of before',
    edit: { in: 'createTimelines', find: 'laneKeyFor(route) + restoreMark', replace: 'laneKeyFor(route)' },
    test: { file: endPartsAfterRestore, name: 'positions that a client has read before' },
  },
  {
    name: 'backup of a folder that is gone',
    invariant: 'a backup succeeds beside tools that remove their files',
    edit: { in: 'copyFolder', find: 'unlessGone(readdir(from))', replace: 'readdir(from)' },
    test: { file: backups, name: 'leaves out a folder, a file and a link that vanish' },
  },
  {
    name: 'a backup behind a link copies itself',
    invariant: 'a backup never lies among what it copies',
    edit: { in: 'assertCopiesNoBackup', find: 'await realPlace(to)', replace: 'to' },
    test: { file: backups, name: 'never copies itself: a place in the data folder is refused' },
  },
  {
    name: 'restore decided before it is staged',
    invariant: 'files change places only when all of them are there',
    edit: {
      in: 'finishRestore',
      find: 'const open = plan.puts.filter((name) => isThere(join(staging, name)));',
      replace: `const open = plan.puts.filter((name) => name !== 'token' && isThere(join(staging, name)));`,
    },
    test: { file: backups, name: 'brings everything back, keeps what it replaces' },
  },
  {
    name: 'folder named before its restore has ended',
    invariant: 'a data folder keeps its name',
    edit: {
      in: 'lockDataFolder',
      find: 'await prepare?.(); const folderId = await nameOf(dataDir);',
      replace: 'const folderId = await nameOf(dataDir); await prepare?.();',
    },
    test: { file: backups, name: 'is restored whole or not at all, whenever the restore is killed' },
  },
  {
    name: 'no backup before a new schema',
    invariant: 'the schema changes after a backup',
    edit: { in: 'backUpBeforeChange', find: 'taken.length === 0', replace: 'taken.length > 0' },
    test: { file: upgrade, name: 'backs up before it changes the schema' },
  },
  {
    name: 'any later schema is taken for an addition',
    invariant: 'this version works only with a later schema that adds to its own',
    edit: { in: 'onlyAdds', find: '/^\\d{4}-add-/.test(step)', replace: 'true' },
    test: { file: upgrade, name: 'does not work with a schema' },
  },
  {
    name: 'restored answers sent again',
    invariant: 'after a restore nothing is sent by itself',
    edit: { in: 'endPartsAfterRestore', find: "state: 'unknown'", replace: "state: 'sent'" },
    test: { file: endPartsAfterRestore, name: 'nothing that waits to be sent' },
  },
  {
    name: 'restored sign-ins count',
    invariant: 'a restore signs nobody in again who was signed out since the backup',
    edit: { in: 'endPartsAfterRestore', find: "await tx.db.deleteFrom('signIns').execute();", replace: '' },
    test: { file: endPartsAfterRestore, name: 'no browser is signed in' },
  },
  {
    name: 'a journal later than the backup believed',
    invariant: 'after a restore no journal can tell that a part was not sent',
    edit: { in: 'endPartsAfterRestore', find: 'await distrustSending(tx);', replace: '' },
    test: { file: endPartsAfterRestore, name: 'a part that was being sent' },
  },
];
