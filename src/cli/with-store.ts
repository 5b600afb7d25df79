import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Store } from '../store/command.ts';
import { openStore } from '../store/open-store.ts';

/** Works on the database itself, so it helps whether the gateway runs or not; a running one sees it within a second. */
export async function withStore<T>(use: (store: Store) => Promise<T>, config = loadConfig()): Promise<T> {
  const { databaseUrl, dataDir } = config;
  if (!databaseUrl && !existsSync(join(dataDir, 'parley.db'))) {
    throw new ParleyError(
      'store_unavailable',
      `There is no database in ${dataDir} yet: Parley has not run there. Start it, or set PARLEY_DATA_DIR as it was started with.`,
    );
  }
  const store = await openStore(
    databaseUrl ? { kind: 'postgres', url: databaseUrl.reveal(), poolSize: 1 } : { kind: 'sqlite', dataDir },
  );
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}
