/**
 * The processes that use this database. Each has a row for as long as it lives, and holds its leases under the row's
 * id. A process that finds another one dead voids its leases immediately, without waiting for them to expire.
 */
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { lockRows } from '../base/row-access.ts';
import { voidDeliveryLeases } from '../delivery/claim-delivery.ts';
import { firstRepeat, requeueParts } from '../delivery/part.ts';
import { voidLaneLeases } from '../rows/lane.ts';
import { voidAccountLeases } from './accounts.ts';

/** The work of a process: everything, receiving or running agents. */
export type ProcessRole = 'all' | 'gateway' | 'worker';

/** Platform calls that an ended process had begun, whose outcome isn't on record. */
export type JournaledSends = { readonly holder: string; readonly begun: readonly string[] };

export type EndedProcesses = {
  /** Ids of the ended processes' rows. */
  readonly ids: readonly string[];
  /** Journals that could be read; sends of the other processes are unknown. */
  readonly sends: readonly JournaledSends[];
};

export type Boot = {
  readonly id: string;
  readonly folder: string;
  /** Default: `all`. */
  readonly role?: ProcessRole;
  /** The folder's processes that have ended. Default: all others, for a process that has the folder to itself. */
  readonly ended?: readonly string[];
  readonly sends?: readonly JournaledSends[];
};

/** Registers a process, and voids the leases of its folder's ended processes. Safe to repeat. */
export const addProcess: StoreCommand<Boot, void> = {
  name: 'addProcess',
  run: async (tx, { id, folder, role = 'all', ended, sends = [] }) => {
    const ids = ended ?? (await bootsIn(tx, folder)).filter((other) => other !== id);
    await tx.db
      .insertInto('boots')
      .values({ id, folder, startedAt: tx.now, role })
      .onConflict((c) => c.doNothing())
      .execute();
    await voidLeases(tx, { ids, sends });
  },
};

/** Voids the leases of ended processes. Several processes may find the same one dead: repeating it changes nothing. */
export const voidProcesses: StoreCommand<EndedProcesses, void> = { name: 'voidProcesses', run: voidLeases };

/** Reads the processes of a data folder that have started and haven't been found dead. */
export const readBoots: StoreQuery<{ readonly folder: string }, readonly string[]> = {
  query: 'readBoots',
  run: (tx, { folder }) => bootsIn(tx, folder),
};

/** Says whether any process that runs agents is registered and hasn't been found dead. */
export const hasWorker: StoreQuery<Record<never, never>, boolean> = {
  query: 'hasWorker',
  run: async (tx) => {
    const query = tx.db.selectFrom('boots').select('id').where('role', '<>', 'gateway').limit(1);
    return (await query.executeTakeFirst()) !== undefined;
  },
};

async function bootsIn(tx: Tx, folder: string): Promise<readonly string[]> {
  const rows = await tx.db.selectFrom('boots').select('id').where('folder', '=', folder).execute();
  return rows.map((boot) => boot.id);
}

async function voidLeases(tx: Tx, { ids, sends }: EndedProcesses): Promise<void> {
  if (ids.length === 0) return;
  await voidAccountLeases(tx, ids);
  await voidLaneLeases(tx, ids);
  const held = await lockDeliveries(tx, ids);
  for (const one of sends) if (ids.includes(one.holder)) await requeueUnsent(tx, one, held);
  await voidDeliveryLeases(tx, ids);
  await tx.db.deleteFrom('boots').where('id', 'in', ids).execute();
}

type HeldDelivery = { readonly key: string; readonly holder: string | null };

/**
 * Locks the conversations to which these processes were delivering, before their parts are read: another process may
 * have found the same one dead, and a third may be sending by now.
 */
function lockDeliveries(tx: Tx, ids: readonly string[]): Promise<readonly HeldDelivery[]> {
  const open = tx.db.selectFrom('outbox').select('conversationKey').where(isOpenPart());
  return lockRows(
    tx,
    tx.db
      .selectFrom('conversations')
      .select(['key', 'deliveryHolder as holder'])
      .where('deliveryHolder', 'in', ids)
      .where('key', 'in', open)
      .orderBy('key'),
  );
}

/** Requeues parts whose platform call hadn't started. */
async function requeueUnsent(
  tx: Tx,
  { holder, begun }: JournaledSends,
  held: readonly HeldDelivery[],
): Promise<void> {
  const keys = held.filter((one) => one.holder === holder).map(({ key }) => key);
  if (keys.length === 0) return;
  const inHand = await tx.db
    .selectFrom('outbox')
    .select('key')
    .where('conversationKey', 'in', keys)
    .where(isOpenPart())
    .where('state', '=', 'sending')
    // For a repeated part, the outcome of its earlier attempts remains unknown.
    .where('attempts', '<', firstRepeat)
    .execute();
  const known = new Set(begun);
  const unsent = inHand.map(({ key }) => key).filter((key) => !known.has(key));
  if (unsent.length > 0) await requeueParts(tx, unsent);
}
