import type { Tx } from '../base/command.ts';
import type { Lane } from '../rows/lane-row.ts';
import { isChildLane, readChild, readChildIn, startChild } from './child-rows.ts';

/**
 * Returns the tree of the run that `head` begins; undefined when the run begins its own. A child's run, and a run that
 * begins with a child's announcement, count against that child's tree; otherwise announcements would renew the budget
 * forever. The first run of a child starts it.
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
