import type { Authority } from '#contracts/outcome.ts';
import type { Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/conversation-key.ts';
import type { Effects } from '../base/effects.ts';
import type { KeptMessage } from '../base/json.ts';
import { placeItem } from '../items/enqueue-item.ts';
import { acceptEntry } from '../rows/item-states.ts';
import { ensureLane } from '../rows/lane-row.ts';

type Kept = {
  readonly kept: KeptMessage;
  readonly account: string;
  readonly senderId: string;
  readonly authority: Authority;
  readonly effects: Effects;
};

/** How long to wait for a kept message's file, ms; the same as for any other message. */
const fetchWaitMs = 20_000;

/** Places a message that waited for an approval in its lane, and records it in the ledger as accepted. */
export async function answerKept(
  tx: Tx,
  { kept, account, senderId, authority, effects }: Kept,
): Promise<void> {
  const { id, lane: spec, route, content, eventKey, messageId } = kept;
  const lane = await ensureLane(tx, spec);
  const isFetching = content.attachments.length > 0;
  const conversationKey = conversationKeyOf(route);
  await placeItem(
    tx,
    lane,
    {
      ...{ id, content, account, conversationKey, messageId, isFetching, senderId, authority },
      kind: 'message',
      source: 'platform',
      reach: 'mode',
      target: route,
      bundle: null,
      isHeld: false,
      dueAt: tx.now + (isFetching ? fetchWaitMs : 0),
    },
    effects,
  );
  await acceptEntry(tx, { account, eventKey }, { inboxId: id, laneKey: lane.key });
}
