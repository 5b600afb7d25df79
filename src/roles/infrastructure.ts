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
import { createMediaPool, type RunMediaJob } from '../media/media-pool.ts';
import { openSendJournal, readSendJournal, type SendJournal } from '../outbox/send-journal.ts';
import type { Closers } from '../processes/closers.ts';
import { type FolderLock, lockDataFolder } from '../processes/folder-lock.ts';
import { publishProcessAddress } from '../processes/process-address.ts';
import { enterProcesses, type ProcessFiles } from '../processes/process-files.ts';
import { bisectFailures } from '../queue/bisect-failures.ts';
import { createLiveEvents, type LiveEvents, noLiveEvents } from '../queue/live-events.ts';
import { type RunningRedis, startRedis } from '../redis/start-redis.ts';
import { storeSetup } from '../steps.ts';
import type { Store, StoreSetup } from '../store/base/command.ts';
import { recordPreview } from '../store/delivery/preview.ts';
import { endPartsAfterRestore, readRestoreMark } from '../store/delivery/restore.ts';
import { openConfiguredStore } from '../store/open-configured.ts';
import {
  addProcess,
  type JournaledSends,
  type ProcessRole,
  readBoots,
  voidProcesses,
} from '../store/processes/process-records.ts';
import { type WatchedStore, watchStore } from '../store/watch-store.ts';
import { textsFor } from '../texts/chat-texts.ts';

/** Connections opened before any stage starts. */
export type Infrastructure = {
  readonly redis: RunningRedis;
  readonly store: WatchedStore;
  /** Identifies this process as the holder of leases. */
  readonly holder: string;
  readonly journal: SendJournal;
  readonly runMediaJob: RunMediaJob;
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
  /** See `StoreSetup`. */
  readonly persistHook: NonNullable<StoreSetup['persistHook']>;
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
  return { redis, ...opened, holder, journal, runMediaJob: createMediaPool(), publishAddress };
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
  { config, log, clock, closers }: InfrastructureDeps,
  folderId: string,
): Promise<RunningRedis> {
  const redis = await startRedis({ config, log, clock, folderId });
  closers.add('redis', redis.stop);
  return redis;
}

async function openStoreFor(
  { config, log, clock, closers, persistHook }: InfrastructureDeps,
  { folderId }: FolderLock,
  files: ProcessFiles,
): Promise<Pick<Infrastructure, 'store' | 'processes' | 'restoreMark'>> {
  const opened = await openConfiguredStore({
    config,
    setup: { ...storeSetup(textsFor(config.language, config.texts)), persistHook },
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

/** Opens the channel to the other processes. A process with its own database has no others to notify. */
export function openLiveEvents(
  { role, databaseUrl }: Config,
  { redis, holder, log }: Pick<Infrastructure, 'redis' | 'holder'> & { readonly log: Log },
): LiveEvents {
  if (role === 'all' && databaseUrl === undefined) return noLiveEvents;
  return createLiveEvents({ redis: redis.connections, keys: redis.keys, holder, log });
}

// Registers this process in the store, and finds the folder's dead processes by their free locks.

/** This process's entry among the processes of one data folder. */
interface ProcessRegistry {
  /**
   * Voids the leases of the folder's dead processes, so that other processes can claim their lanes without waiting for
   * expiry. Returns true if there were any. Throws the store's faults.
   */
  reapDead(): Promise<boolean>;
  /** Unregisters this process. Call last, before closing the store. */
  unregister(): Promise<void>;
}

/** Dependencies of registering a process. */
type ProcessRegistryDeps = {
  readonly store: Store;
  readonly files: ProcessFiles;
  readonly folderId: string;
  readonly log: Log;
};

/** Returns the name of a process as a holder of leases. */
export function bootIdOf(folderId: string, processName: string): string {
  return `${folderId}/${processName}`;
}

/** Registers this process in the store, voiding the leases of dead ones. Throws the store's faults. */
export async function registerProcess(
  deps: ProcessRegistryDeps,
  role: ProcessRole,
): Promise<ProcessRegistry> {
  const { store, files, folderId, log } = deps;
  const id = bootIdOf(folderId, files.name);
  const end = async (ids: readonly string[]) => {
    const names = ids.map(nameOf);
    await store.write(voidProcesses, { ids, sends: await settledSends(deps, names) });
    files.remove(names);
  };
  const leave = () => end([id]);
  if (role === 'all') {
    // It holds the folder exclusively, so every earlier process is dead.
    const left = files.others();
    await store.write(addProcess, { id, folder: folderId, role, sends: await settledSends(deps, left) });
    files.remove(left);
    return { reapDead: async () => false, unregister: leave };
  }
  const left = files.ended();
  const ended = await deadBoots(deps);
  await store.write(addProcess, {
    id,
    folder: folderId,
    role,
    ended,
    sends: await settledSends(deps, ended.map(nameOf)),
  });
  files.remove([...left, ...ended.map(nameOf)]);
  return {
    unregister: leave,
    reapDead: async () => {
      const ids = await deadBoots(deps);
      if (ids.length === 0) return false;
      const notReaped = (id: string, error: unknown) =>
        log.warn({ process: nameOf(id), error }, 'process.not-reaped');
      const reaped = await bisectFailures(ids, end, notReaped);
      log.warn({ processes: ids.map(nameOf) }, 'processes.reaped');
      return reaped.length > 0;
    },
  };
}

async function deadBoots({ store, files, folderId }: ProcessRegistryDeps): Promise<readonly string[]> {
  const boots = await store.read(readBoots, { folder: folderId });
  return boots.filter((id) => !files.isAlive(nameOf(id)));
}

/**
 * Reads the journals of processes that have ended. Their previews are recorded before their leases are voided, because
 * the next holder of a run continues with its preview.
 */
async function settledSends(
  { store, files }: ProcessRegistryDeps,
  names: readonly string[],
): Promise<readonly JournaledSends[]> {
  const journals = names.flatMap((name) => readSendJournal(files.journalOf(name)) ?? []);
  for (const preview of journals.flatMap(({ shown }) => shown))
    await store.write(recordPreview, { kind: 'sent', ...preview });
  return journals.map(({ holder, begun }) => ({ holder, begun }));
}

function nameOf(boot: string): string {
  return boot.slice(boot.lastIndexOf('/') + 1);
}
