import { join } from 'node:path';
import type { Store, StoreSetup } from './base/command.ts';

export type StoreSettings =
  | { readonly kind: 'sqlite'; readonly dataDir: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly poolSize?: number };

/** Opens the database and brings its schema up to date. Loads only the driver that is used. */
export async function openStore(settings: StoreSettings, setup: StoreSetup): Promise<Store> {
  if (settings.kind === 'sqlite') {
    const { openSqliteStore } = await import('./sqlite/sqlite-store.ts');
    return openSqliteStore(join(settings.dataDir, 'parley.db'), setup);
  }
  const { openPostgresStore } = await import('./postgres/postgres-store.ts');
  return openPostgresStore({ url: settings.url, poolSize: settings.poolSize ?? 10 }, setup);
}
