/** Shows with a mark that a message is being answered; it goes when the message has its answer, or any other end. */
import type { MessageId } from '#contracts/ids.ts';
import type { StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { showMark } from '../items/marks.ts';
import { lockLaneAt } from '../rows/lane.ts';
import { markTaken } from '../rows/mark.ts';
import type { RunFence } from '../rows/run.ts';

/** The message that is answered, and the mark for it. */
export type AcknowledgementInput = RunFence & {
  readonly messageId: MessageId;
  readonly emoji: string;
};

/** Sets the mark for a run; not if the run has ended or has answered the message. Safe to repeat. */
export const acknowledge: StoreCommand<AcknowledgementInput, Effects> = {
  name: 'acknowledge',
  run: async (tx, { laneKey, epoch, runId, messageId, emoji }) => {
    await lockLaneAt(tx, laneKey, epoch);
    const effects = noEffects();
    const item = await answeredItem.first(tx, { runId, messageId });
    if (item === undefined) return effects;
    const inboxId = item.id;
    await markTaken(tx, { inboxId, laneKey, emoji });
    await showMark(tx, { inboxId, canReact: true }, effects);
    return effects;
  },
};

const answeredItem = prepared((db, of: QueryParams<{ runId: string; messageId: string }>) =>
  db
    .selectFrom('inbox')
    .select('id')
    .where('runId', '=', of.runId)
    .where('messageId', '=', of.messageId)
    .where('state', '=', 'taken'),
);
