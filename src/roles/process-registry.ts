/** Registers this process in the store, and finds the folder's dead processes by their free locks. */
import type { Log } from '#contracts/log.ts';
import { readSendJournal } from '../outbox/send-journal.ts';
import type { ProcessFiles } from '../processes/process-files.ts';
import { actApart } from '../queue/act-apart.ts';
import type { Store } from '../store/base/command.ts';
import { recordPreview } from '../store/delivery/record-preview.ts';
import {
  addProcess,
  type JournaledSends,
  type ProcessRole,
  readBoots,
  voidProcesses,
} from '../store/processes/process-records.ts';

/** This process's entry among the processes of one data folder. */
export interface ProcessRegistry {
  /**
   * Voids the leases of the folder's dead processes, so that other processes can claim their lanes without waiting for
   * expiry. Returns true if there were any. Throws the store's faults.
   */
  reapDead(): Promise<boolean>;
  /** Unregisters this process. Call last, before closing the store. */
  unregister(): Promise<void>;
}

/** Dependencies of registering a process. */
export type ProcessRegistryDeps = {
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
      const reaped = await actApart(ids, end, notReaped);
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
