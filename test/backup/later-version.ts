/** A version of Parley after this one: nothing has been released, so its step of the schema is made up. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { workerData } from 'node:worker_threads';
import type { Migration } from 'kysely/migration';
import { storeSetup } from '../../src/steps.ts';
import type { Store, StoreSetup } from '../../src/store/base/command.ts';
import { migrations } from '../../src/store/migrate.ts';
import { openConfiguredStore } from '../../src/store/open-configured.ts';
import { noticesFor } from '../../src/texts/notices.ts';

/** A file of this name in the data folder: the writer thread sees nothing of the environment. */
export const dieInChange = 'die-in-change';

const addNotes: Migration = {
  up: async (db) => {
    await db.schema.createTable('notes').addColumn('id', 'text').execute();
    await db.schema.alterTable('boots').addColumn('note', 'text').execute();
    // Killed here, half of the step was done.
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

/** Opens the folder's database as the later version does. */
export function openLater(dataDir: string, onBackup?: (path: string) => void): Promise<Store> {
  return openConfiguredStore({ config: { dataDir }, setup: laterProgram(), ...(onBackup && { onBackup }) });
}
