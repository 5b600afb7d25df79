/** A version of Parley after this one. Its schema change is made up. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { workerData } from 'node:worker_threads';
import { storeSetup } from '../../src/steps.ts';
import type { Store, StoreSetup } from '../../src/store/base/command.ts';
import type { SchemaStep } from '../../src/store/base/schema-step.ts';
import { migrations } from '../../src/store/migrate.ts';
import { openConfiguredStore } from '../../src/store/open-configured.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';

/** A file with this name in the data folder is the signal, because the writer thread can't see the environment. */
export const dieInChange = 'die-in-change';

const addNotes: SchemaStep = {
  adds: {
    tables: {
      notes: { columns: { id: 'text not null' }, key: ['id'], indexes: { notesId: { on: ['id'] } } },
    },
    columns: { boots: { note: 'text' } },
    indexes: { boots: { bootsNote: { on: ['note'], where: '"note" is not null' } } },
  },
  fingerprint: 'made up',
  fill: async ({ run }) => {
    await run(`update boots set note = 'before'`);
    // If it is killed here, the change is made but not committed.
    if (existsSync(join(dirname(String(workerData?.file)), dieInChange)))
      process.kill(process.pid, 'SIGKILL');
  },
};

export const laterStep = '0100-add-notes';

export function laterProgram(): StoreSetup {
  const writer = new URL('./later-writer.ts', import.meta.url);
  return { ...storeSetup(textsFor('en')), writer, migrations: { ...migrations, [laterStep]: addNotes } };
}

/** Opens the folder's database as the later version would. */
export function openLater(dataDir: string, onBackup?: (path: string) => void): Promise<Store> {
  return openConfiguredStore({ config: { dataDir }, setup: laterProgram(), ...(onBackup && { onBackup }) });
}
