import { wordsFor } from '../commands/queue.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { cancelItem, editItem, promoteItem } from '../store/items/change-item.ts';
import type { Actor, ItemChangeResult } from '../store/items/item-change.ts';
import { type FoundItem, findQueuedItem } from '../store/reads/read-waiting-items.ts';

type ItemFound = Extract<FoundItem, { kind: 'found' }>;

/** A change of a waiting message. */
export type ItemOrder =
  | { readonly verb: 'cancel' | 'promote' }
  /** `timeZone`: IANA name. */
  | { readonly verb: 'edit'; readonly text: string; readonly timeZone: string };

/** A change and its author. */
export type QueuedItemOrder = {
  /** The beginning of the message's id. */
  readonly id: string;
  /** Recorded as the author. */
  readonly ref: string;
  readonly order: ItemOrder;
  /** The author's own accounts, `<channel>:<peer>`, which aren't notified of what the author cancels. */
  readonly people?: readonly string[];
};

export type QueuedItemChange =
  | Exclude<FoundItem, ItemFound>
  | (ItemFound & { readonly changed: ItemChangeResult; readonly effects: Effects });

const steps = { cancel: cancelItem, promote: promoteItem } as const;

/** Changes a waiting message, found by the beginning of its id, as the operator, who may change any message. */
export async function changeQueuedItem(
  store: Pick<Store, 'read' | 'write'>,
  { id, ref, order, people = [] }: QueuedItemOrder,
): Promise<QueuedItemChange> {
  const found = await store.read(findQueuedItem, { id: id.toLowerCase() });
  if (found.kind !== 'found') return found;
  const { laneKey, number } = found;
  const actor: Actor = { ref, people, mayChangeAny: true, mayPromoteOwn: true };
  const asked = { laneKey, number, actor };
  if (order.verb !== 'edit') return { ...found, ...(await store.write(steps[order.verb], asked)) };
  const words = await wordsFor(store, { laneKey, number, ...order });
  if (words === undefined) return { kind: 'none' };
  return { ...found, ...(await store.write(editItem, { ...asked, ...words })) };
}
