import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { loadConfig } from '../config/load-config.ts';
import { storeSetup } from '../steps.ts';
import type { Store, StoreSetup } from '../store/base/command.ts';
import { openStore } from '../store/open-store.ts';
import { readableStore } from '../store/readable-store.ts';
import { noticesFor } from '../texts/notices.ts';

/** Works on the database itself, so it helps whether the gateway runs or not; a running one sees it within a second. */
export async function withStore<T>(use: (store: Store) => Promise<T>, config = loadConfig()): Promise<T> {
  const { databaseUrl, dataDir } = config;
  const setup = storeSetup(noticesFor(config.language, config.texts));
  if (!databaseUrl && !existsSync(join(dataDir, 'parley.db'))) {
    throw new ParleyError(
      'store_unavailable',
      `There is no database in ${dataDir}: Parley hasn't run there yet. Start it, or set PARLEY_DATA_DIR to the folder it uses.`,
    );
  }
  const store = databaseUrl
    ? await openStore({ kind: 'postgres', url: databaseUrl.reveal(), poolSize: 1 }, setup)
    : await openFile(dataDir, setup);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** On a disk that is full or read-only, what there is can still be read. */
async function openFile(dataDir: string, setup: StoreSetup): Promise<Store> {
  try {
    return await openStore({ kind: 'sqlite', dataDir }, setup);
  } catch (error) {
    if (!(error instanceof ParleyError) || error.retry.kind !== 'later') throw error;
    return readableStore(dataDir, error) ?? Promise.reject(error);
  }
}
