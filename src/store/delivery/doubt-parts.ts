import type { StoreCommand } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { lockLanes } from '../rows/lane-row.ts';
import { endPart } from './end-part.ts';
import { distrustSending } from './part-states.ts';

/**
 * Ends what waits to be sent as unknown, after a restore: it may have been sent since the backup was made. The operator
 * decides about each. Parts in `sending` are looked for or end likewise when they are claimed: the journals of their processes
 * are later than the backup and no longer name a call that has ended. Safe to repeat: it finds nothing then.
 */
export const doubtParts: StoreCommand<{ readonly madeAt: string }, number> = {
  name: 'doubtParts',
  run: async (tx, { madeAt }) => {
    const parts = await tx.db
      .selectFrom('outbox')
      .select(['key', 'laneKey'])
      .where(isOpenPart())
      .where('state', '=', 'pending')
      .execute();
    await lockLanes(tx, [...new Set(parts.flatMap(({ laneKey }) => laneKey ?? []))].sort());
    const problem = `restored from a backup made at ${madeAt}; it may have been sent since`;
    for (const { key } of parts) await endPart(tx, { key, state: 'unknown', problem });
    await distrustSending(tx);
    return parts.length;
  },
};
