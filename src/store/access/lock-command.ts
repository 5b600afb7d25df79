import type { CommandPlace, Tx } from '../base/command.ts';
import type { LaneRef } from '../base/lane-spec.ts';
import { lockAccounts } from '../processes/accounts.ts';
import { type Lane, lockOrMakeLanes } from '../rows/lane-row.ts';

type OtherRows = { readonly accounts?: readonly string[]; readonly lanes?: readonly LaneRef[] };

/**
 * Locks a command's account and lane together with the others that it needs, accounts before lanes. Returns the lanes
 * that exist. On SQLite there is only one writer, so nothing needs locking.
 */
export async function lockCommand(
  tx: Tx,
  { account, lane }: CommandPlace,
  { accounts = [], lanes = [] }: OtherRows = {},
): Promise<readonly Lane[]> {
  await lockAccounts(tx, [...new Set([account, ...accounts])]);
  return lockOrMakeLanes(tx, [lane, ...lanes]);
}
