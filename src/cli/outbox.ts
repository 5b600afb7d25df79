import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { loadConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import type { Store, StoreCommand } from '../store/command.ts';
import {
  dropPart,
  type Operated,
  readUndelivered,
  retryPart,
  type UndeliveredPart,
} from '../store/delivery/operate.ts';
import { openStore } from '../store/open-store.ts';
import type { ExitCode } from './exit-code.ts';

/** Works on the database itself, so it helps whether the gateway runs or not; a running one sees it within a second. */
async function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
  const { databaseUrl, dataDir } = loadConfig();
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

export async function runOutboxList({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const parts = await withStore((store) => store.read(readUndelivered, { limit: 200 }));
  if (asJson) process.stdout.write(`${JSON.stringify(parts, undefined, 2)}\n`);
  else
    process.stdout.write(
      parts.length === 0 ? 'Everything is delivered.\n' : `${parts.map(lineOf).join('\n')}\n`,
    );
  return 0;
}

function lineOf({ key, state, conversation, tries, problem, excerpt }: UndeliveredPart): string {
  const reason = problem === undefined ? '' : ` (${problem})`;
  return stripText(`${key}  ${state}${reason}  ${conversation}  ${tries} tries  “${excerpt}”`);
}

export const runOutboxRetry = (key: string): Promise<ExitCode> => operate(retryPart, key);
export const runOutboxDrop = (key: string): Promise<ExitCode> => operate(dropPart, key);

async function operate(
  command: StoreCommand<{ readonly key: string }, Operated>,
  key: string,
): Promise<ExitCode> {
  const operated = await withStore((store) => store.write(command, { key }));
  if (operated === 'done') return 0;
  const why = operated === 'not-found' ? 'is not in the outbox' : 'is not in a state that allows it';
  throw new ParleyError('invalid_input', `Part ${key} ${why}; parley outbox list shows what is there.`);
}
