import type { Unsendable } from '#contracts/message.ts';
import type { StoreCommand } from '../base/command.ts';
import { lockLaneAt } from '../rows/lane-row.ts';
import type { RunFence } from '../rows/run-fence.ts';

export type MarkInput = RunFence & {
  readonly marks: readonly { readonly id: string; readonly unsendable: Unsendable }[];
};

/**
 * Records which contents no request may include any more, so that they are searched for only once. Safe to repeat:
 * marks are set, not added to.
 */
export const markUnsendable: StoreCommand<MarkInput, void> = {
  name: 'markUnsendable',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    for (const { id, unsendable } of input.marks) {
      await tx.db
        .updateTable('transcript')
        .set({ unsendable, updatedAt: tx.now })
        .where('id', '=', id)
        .where('sessionId', '=', (eb) =>
          eb.selectFrom('runs').select('sessionId').where('runs.id', '=', input.runId),
        )
        .execute();
    }
  },
};
