import type { Tx } from '../base/command.ts';
import type { Lane } from '../rows/lane-row.ts';
import { isChildLane, readChild, readChildIn, startChild } from './child-rows.ts';

/**
 * Tree of the run that `head` begins, unless the run begins one of its own. A child's run, and one that begins
 * with a child's announcement, count against that child's: announcing would renew the budget for ever. The
 * first run of a child starts it.
 */
export async function treeOf(
  tx: Tx,
  lane: Lane,
  head: { readonly sourceKey: string | null },
): Promise<string | undefined> {
  if (isChildLane(lane.key)) {
    const child = await readChildIn(tx, lane.key);
    if (child?.state === 'queued') await startChild(tx, child);
    return child?.treeId;
  }
  const announced = /^child:(.+)$/.exec(head.sourceKey ?? '')?.[1];
  return announced === undefined ? undefined : (await readChild(tx, announced))?.treeId;
}
