/**
 * The processes that use this database: each has a row for as long as it lives, and holds its leases under the
 * row's id. A process that finds one dead voids its leases at once, without waiting for their expiry.
 */
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { lockRows } from '../base/row-locks.ts';
import { voidDeliveryLeases } from '../delivery/delivery-leases.ts';
import { firstRepeat, requeueParts } from '../delivery/part-states.ts';
import { voidLaneLeases } from '../rows/lane-leases.ts';
import { voidAccountLeases } from './accounts.ts';

/** Tasks of a process: everything, receiving or working. */
export type ProcessRole = 'all' | 'gateway' | 'worker';

/** Which calls to platforms a process that ended had begun, and which ended is not on record. */
export type JournaledSends = { readonly holder: string; readonly begun: readonly string[] };

export type EndedProcesses = {
  /** Their boots. */
  readonly ids: readonly string[];
  /** Journals that could be read; the other processes' sends are unknown. */
  readonly sends: readonly JournaledSends[];
};

export type Boot = {
  readonly id: string;
  readonly folder: string;
  /** Default: `all`. */
  readonly role?: ProcessRole;
  /** The folder's processes that have ended. Default: all others, for a process that has it alone. */
  readonly ended?: readonly string[];
  readonly sends?: readonly JournaledSends[];
};

/** Enters a process, and voids what ended processes of its folder held. Safe to repeat. */
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

/** Voids what ended processes held. Several may find the same one dead: repeating it changes nothing. */
export const voidProcesses: StoreCommand<EndedProcesses, void> = { name: 'voidProcesses', run: voidLeases };

/** The processes of a data folder that have begun and were not found dead. */
export const readBoots: StoreQuery<{ readonly folder: string }, readonly string[]> = {
  query: 'readBoots',
  run: (tx, { folder }) => bootsIn(tx, folder),
};

/** Whether any process that runs agents has entered and was not found dead. */
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
 * Locks the conversations that these processes were delivering, before their parts are read: another process may
 * have found the same one dead, and a third be sending by now.
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

/** Requeues parts whose call had not started. */
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
    // The earlier attempts of a repeat remain unknown.
    .where('attempts', '<', firstRepeat)
    .execute();
  const known = new Set(begun);
  const unsent = inHand.map(({ key }) => key).filter((key) => !known.has(key));
  if (unsent.length > 0) await requeueParts(tx, unsent);
}
