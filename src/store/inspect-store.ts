import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { StoreSettings } from './open-store.ts';
import type { StoreReport } from './store-report.ts';

/** Inspects the database read-only, while others may use it. Never throws for its findings. */
export async function inspectStore(settings: StoreSettings): Promise<StoreReport> {
  if (settings.kind === 'postgres') {
    const { inspectPostgres } = await import('./postgres/inspect-postgres.ts');
    return inspectPostgres(settings.url);
  }
  const file = join(settings.dataDir, 'parley.db');
  if (!existsSync(file)) return { kind: 'absent' };
  const { inspectSqlite } = await import('./sqlite/inspect-sqlite.ts');
  return inspectSqlite(file);
}
