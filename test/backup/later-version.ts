/** A version of Parley after this one. Nothing has been released yet, so its schema change is made up. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { workerData } from 'node:worker_threads';
import type { Migration } from 'kysely/migration';
import { storeSetup } from '../../src/steps.ts';
import type { Store, StoreSetup } from '../../src/store/base/command.ts';
import { migrations } from '../../src/store/migrate.ts';
import { openConfiguredStore } from '../../src/store/open-configured.ts';
import { noticesFor } from '../../src/texts/notices.ts';

/** A file with this name in the data folder is the signal, because the writer thread can't see the environment. */
export const dieInChange = 'die-in-change';

const addNotes: Migration = {
  up: async (db) => {
    await db.schema.createTable('notes').addColumn('id', 'text').execute();
    await db.schema.alterTable('boots').addColumn('note', 'text').execute();
    // If it is killed here, half of the change is done.
    if (existsSync(join(dirname(String(workerData?.file)), dieInChange)))
      process.kill(process.pid, 'SIGKILL');
    await db.schema.createIndex('notesId').on('notes').column('id').execute();
  },
};

export const laterStep = '0002-add-notes';

export function laterProgram(): StoreSetup {
  const writer = new URL('./later-writer.ts', import.meta.url);
  return { ...storeSetup(noticesFor('en')), writer, migrations: { ...migrations, [laterStep]: addNotes } };
}

/** Opens the folder's database as the later version would. */
export function openLater(dataDir: string, onBackup?: (path: string) => void): Promise<Store> {
  return openConfiguredStore({ config: { dataDir }, setup: laterProgram(), ...(onBackup && { onBackup }) });
}
