/** The other processes on this data folder: those that have died are found by their free lock. */
import type { Log } from '#contracts/log.ts';
import { readSendJournal } from './outbox/send-journal.ts';
import type { ProcessFiles } from './processes/process-files.ts';
import { beginBoot, endBoots, type Role, readBoots } from './store/boots.ts';
import type { Store } from './store/command.ts';

export interface Siblings {
  /**
   * Voids what dead processes of the folder held, so that it goes on here without waiting for leases to
   * end. True when there were any. Throws what the store throws.
   */
  bury(): Promise<boolean>;
  /** Takes this process out of the folder, the last thing before its store closes: nobody has to bury it. */
  leave(): Promise<void>;
}

export type SiblingsDeps = {
  readonly store: Store;
  readonly files: ProcessFiles;
  readonly folderId: string;
  readonly log: Log;
};

/** Names this process as the holder of leases. */
export function bootIdOf(folderId: string, processName: string): string {
  return `${folderId}/${processName}`;
}

/** Enters this process in the store, behind the burial of those that ended before it. */
export async function beginAmongSiblings(deps: SiblingsDeps, role: Role): Promise<Siblings> {
  const { store, files, folderId, log } = deps;
  const id = bootIdOf(folderId, files.name);
  const end = async (ids: readonly string[]) => {
    const names = ids.map(nameOf);
    await store.write(endBoots, { ids, sends: sendsOf(deps, names) });
    files.remove(names);
  };
  const leave = () => end([id]);
  if (role === 'all') {
    // It has the folder alone: whoever was here before it is dead.
    const left = files.others();
    await store.write(beginBoot, { id, folder: folderId, role, sends: sendsOf(deps, left) });
    files.remove(left);
    return { bury: async () => false, leave };
  }
  const left = files.ended();
  const ended = await deadBoots(deps);
  await store.write(beginBoot, {
    id,
    folder: folderId,
    role,
    ended,
    sends: sendsOf(deps, ended.map(nameOf)),
  });
  files.remove([...left, ...ended.map(nameOf)]);
  return {
    leave,
    bury: async () => {
      const ids = await deadBoots(deps);
      if (ids.length === 0) return false;
      await end(ids);
      log.warn({ processes: ids.map(nameOf) }, 'processes.buried');
      return true;
    },
  };
}

async function deadBoots({ store, files, folderId }: SiblingsDeps): Promise<readonly string[]> {
  const boots = await store.read(readBoots, { folder: folderId });
  return boots.filter((id) => !files.isAlive(nameOf(id)));
}

function sendsOf({ files }: SiblingsDeps, names: readonly string[]) {
  return names.flatMap((name) => readSendJournal(files.journalOf(name)) ?? []);
}

function nameOf(boot: string): string {
  return boot.slice(boot.lastIndexOf('/') + 1);
}
