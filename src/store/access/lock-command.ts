import type { CommandPlace, Tx } from '../base/command.ts';
import type { LaneRef } from '../base/lane-spec.ts';
import { lockAccounts } from '../processes/accounts.ts';
import { type Lane, lockOrMakeLanes } from '../rows/lane-row.ts';

type OtherRows = { readonly accounts?: readonly string[]; readonly lanes?: readonly LaneRef[] };

/**
 * Locks the account and the lane of a command together with others that it needs, accounts before lanes, and returns the
 * lanes that there are. On SQLite one writer has them all.
 */
export async function lockCommand(
  tx: Tx,
  { account, lane }: CommandPlace,
  { accounts = [], lanes = [] }: OtherRows = {},
): Promise<readonly Lane[]> {
  await lockAccounts(tx, [...new Set([account, ...accounts])]);
  return lockOrMakeLanes(tx, [lane, ...lanes]);
}
