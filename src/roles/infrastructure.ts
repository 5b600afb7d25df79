/**
 * Opens what every stage needs: the data folder's lock, the send journal, Redis, the store and this process's record.
 */
import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import { finishRestore } from '../backup/restore.ts';
import { isRestoreUnfinished } from '../backup/restore-plan.ts';
import type { Config } from '../config/config.ts';
import { openSendJournal, type SendJournal } from '../outbox/send-journal.ts';
import type { Closers } from '../processes/closers.ts';
import { type FolderLock, lockDataFolder } from '../processes/folder-lock.ts';
import { publishProcessAddress } from '../processes/process-address.ts';
import { enterProcesses, type ProcessFiles } from '../processes/process-files.ts';
import { type RunningRedis, startRedis } from '../redis/start-redis.ts';
import { storeSetup } from '../steps.ts';
import { endPartsAfterRestore } from '../store/delivery/end-parts-after-restore.ts';
import { openConfiguredStore } from '../store/open-configured.ts';
import { readRestoreMark } from '../store/reads/read-restore-mark.ts';
import { type WatchedStore, watchStore } from '../store/watch-store.ts';
import { textsFor } from '../texts/chat-texts.ts';
import { bootIdOf, type ProcessRegistry, registerProcess } from './process-registry.ts';

/** Connections opened before any stage starts. */
export type Infrastructure = {
  readonly redis: RunningRedis;
  readonly store: WatchedStore;
  /** Identifies this process as the holder of leases. */
  readonly holder: string;
  readonly journal: SendJournal;
  readonly processes: ProcessRegistry;
  /** Identifies the restores that the database went through. */
  readonly restoreMark: string;
  /**
   * Publishes this process's address for the command line until the process closes. Never throws; a failure is logged.
   */
  publishAddress(url: string): Promise<void>;
};

type InfrastructureDeps = {
  readonly config: Config;
  readonly log: Log;
  readonly clock: Clock;
  /** Receives everything that must be released again, even if a later part fails. */
  readonly closers: Closers;
};

/**
 * Opens the data folder, Redis and the store. Throws ParleyError: `data_folder_locked`, `config_invalid`,
 * `redis_unavailable`, `store_unavailable`.
 */
export async function openInfrastructure(ground: InfrastructureDeps): Promise<Infrastructure> {
  const { config, log, closers } = ground;
  if (config.role !== 'all' && config.databaseUrl && !config.redisUrl) log.warn({}, 'redis.not-shared');
  const use = config.role === 'all' ? 'exclusive' : 'shared';
  const lock = await lockDataFolder(config.dataDir, use, () => endRestore(config, log));
  closers.add('folder lock', async () => lock.release());
  const files = enterProcesses(config.dataDir);
  closers.add('process lock', async () => files.release());
  const holder = bootIdOf(lock.folderId, files.name);
  const journal = openSendJournal({ path: files.journalOf(files.name), holder, log });
  closers.add('send journal', async () => journal.close());
  const [redis, opened] = await openBoth(
    openRedisFor(ground, lock.folderId),
    openStoreFor(ground, lock, files),
  ).catch((error: unknown) => {
    // Nothing was sent. A start may be retried for days, and each attempt has its own files.
    files.remove([files.name]);
    throw error;
  });
  const publishAddress = (url: string) =>
    publishProcessAddress(files, { ...config, url }, closers).catch((error: unknown) =>
      log.warn({ error }, 'process.address-not-written'),
    );
  return { redis, ...opened, holder, journal, publishAddress };
}

/** Finishes an interrupted restore, which left files of two states and needs exclusive use of the folder. */
async function endRestore({ dataDir, databaseUrl, role }: Config, log: Log): Promise<void> {
  if (!isRestoreUnfinished(dataDir)) return;
  if (role === 'all') {
    const end = await finishRestore({ dataDir, databaseUrl: databaseUrl?.reveal() });
    return log.warn({ end }, 'restore.resumed');
  }
  throw new ParleyError(
    'config_invalid',
    `A restore of ${dataDir} was interrupted. Finish it first: ${parleyCommand} restore`,
  );
}

/**
 * Awaits both even if one fails, so that the other gets closed. If both fail, the database's error says more, since
 * Redis is on the same disk.
 */
async function openBoth<One, Other>(one: Promise<One>, other: Promise<Other>): Promise<[One, Other]> {
  await Promise.allSettled([one, other]);
  const opened = await other;
  return [await one, opened];
}

async function openRedisFor(
  { closers, ...ground }: InfrastructureDeps,
  folderId: string,
): Promise<RunningRedis> {
  const redis = await startRedis({ ...ground, folderId });
  closers.add('redis', redis.stop);
  return redis;
}

async function openStoreFor(
  { config, log, clock, closers }: InfrastructureDeps,
  { folderId }: FolderLock,
  files: ProcessFiles,
): Promise<Pick<Infrastructure, 'store' | 'processes' | 'restoreMark'>> {
  const opened = await openConfiguredStore({
    config,
    setup: storeSetup(textsFor(config.language, config.texts)),
    onBackup: (path) => log.info({ path }, 'backup.created'),
    onNoBackup: (reason) => log.warn({ reason }, 'backup.skipped'),
  });
  const store = watchStore(opened, clock.now);
  closers.add('store', store.close);
  const restored = await store.write(endPartsAfterRestore, {});
  if (restored) log.warn(restored, 'store.restored');
  const processes = await registerProcess({ store, files, folderId, log }, config.role);
  closers.add('process', processes.unregister);
  return { store, processes, restoreMark: await store.read(readRestoreMark, {}) };
}
