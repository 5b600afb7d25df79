/** What stands before any stage: the data folder is ours, Redis runs, the store is open, and who we are is known. */
import type { Clock } from '#contracts/clock.ts';
import type { Closers } from '#contracts/closers.ts';
import type { Log } from '#contracts/log.ts';
import type { Config } from './config/config.ts';
import { openSendJournal, type SendJournal } from './outbox/send-journal.ts';
import { type RunningRedis, startRedis } from './redis/start-redis.ts';
import { beginBoot } from './store/accounts.ts';
import type { Store } from './store/command.ts';
import { lockDataFolder } from './store/folder-lock.ts';
import { openStore } from './store/open-store.ts';

export type Foundations = {
  readonly redis: RunningRedis;
  readonly store: Store;
  /** Names this process as the holder of leases. */
  readonly holder: string;
  readonly journal: SendJournal;
};

type Ground = {
  readonly config: Config;
  readonly log: Log;
  readonly clock: Clock;
  /** Gets what has to be released again, also when a later part fails. */
  readonly closers: Closers;
};

/** Throws ParleyError: `data_folder_locked`, `config_invalid`, `redis_unavailable`, `store_unavailable`. */
export async function openFoundations(ground: Ground): Promise<Foundations> {
  const { config, log, closers } = ground;
  const lock = await lockDataFolder(config.dataDir);
  closers.add('folder lock', async () => lock.release());
  const { folderId } = lock;
  const journal = openSendJournal(config.dataDir, log);
  closers.add('send journal', async () => journal.close());
  const [redis, { store, holder }] = await openBoth(
    openRedisFor(ground, folderId),
    openStoreFor(ground, folderId, journal),
  );
  return { redis, store, holder, journal };
}

/** When one fails the other is waited for all the same, so that it is closed and not left open. */
async function openBoth<One, Other>(one: Promise<One>, other: Promise<Other>): Promise<[One, Other]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}

async function openRedisFor({ closers, ...ground }: Ground, folderId: string): Promise<RunningRedis> {
  const redis = await startRedis({ ...ground, folderId });
  closers.add('redis', redis.stop);
  return redis;
}

async function openStoreFor(
  { config, closers }: Ground,
  folder: string,
  { earlier, start }: SendJournal,
): Promise<{ store: Store; holder: string }> {
  const { databaseUrl, dataDir } = config;
  const store = await openStore(
    databaseUrl ? { kind: 'postgres', url: databaseUrl.reveal() } : { kind: 'sqlite', dataDir },
  );
  closers.add('store', store.close);
  const holder = `${folder}/${crypto.randomUUID()}`;
  await store.write(beginBoot, { id: holder, folder, ...(earlier && { earlier }) });
  start(holder);
  return { store, holder };
}
