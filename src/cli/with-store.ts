import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { isRestoreUnfinished } from '../backup/restore-plan.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { storeSetup } from '../steps.ts';
import type { Store, StoreSetup } from '../store/base/command.ts';
import { openConfiguredStore } from '../store/open-configured.ts';
import { readableStore } from '../store/readable-store.ts';
import { textsFor } from '../texts/chat-texts.ts';
import { agreeWithProcesses } from './agree-with-processes.ts';
import { assertReadable } from './file-fault.ts';

/** Works on the database directly, whether the gateway runs or not; a running one notices changes within a second. */
export async function withStore<T>(use: (store: Store) => Promise<T>, config = loadConfig()): Promise<T> {
  const { databaseUrl, dataDir } = config;
  const setup = storeSetup(textsFor(config.language, config.texts));
  assertReadable(dataDir);
  await agreeWithProcesses(config);
  if (isRestoreUnfinished(dataDir))
    throw new ParleyError(
      'store_unavailable',
      `A restore of ${dataDir} was interrupted. Finish it first: ${parleyCommand} restore`,
    );
  if (!databaseUrl && !existsSync(join(dataDir, 'parley.db'))) {
    throw new ParleyError(
      'store_unavailable',
      `There is no database in ${dataDir}: Parley hasn't run there yet. Start it, or set PARLEY_DATA_DIR to the folder it uses.`,
    );
  }
  const store = databaseUrl
    ? await openConfiguredStore({ config, setup, poolSize: 1, onNoBackup: warn })
    : await openFile(config, setup);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** Opens the file; on a full or read-only disk, existing data can still be read. */
async function openFile(config: Config, setup: StoreSetup): Promise<Store> {
  try {
    return await openConfiguredStore({ config, setup });
  } catch (error) {
    if (!(error instanceof ParleyError) || error.retry.kind !== 'later') throw error;
    return readableStore(config.dataDir, error) ?? Promise.reject(error);
  }
}

function warn(reason: string): void {
  process.stderr.write(`No backup was made before the schema change: ${reason}\n`);
}
