import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { Actor } from '../store/items/actor.ts';
import { cancelItem } from '../store/items/cancel-item.ts';
import type { ItemChangeResult } from '../store/items/item-change.ts';
import { promoteItem } from '../store/items/promote-item.ts';
import { type FoundItem, findQueuedItem } from '../store/reads/read-waiting-items.ts';

type ItemFound = Extract<FoundItem, { kind: 'found' }>;

export type QueuedItemChange =
  | Exclude<FoundItem, ItemFound>
  | (ItemFound & { readonly changed: ItemChangeResult; readonly effects: Effects });

const steps = { cancel: cancelItem, promote: promoteItem } as const;

/** Changes a waiting message, found by the beginning of its id, as the operator, who may change each; `ref` goes on record. */
export async function changeQueuedItem(
  store: Pick<Store, 'read' | 'write'>,
  { verb, id, ref }: { readonly verb: keyof typeof steps; readonly id: string; readonly ref: string },
): Promise<QueuedItemChange> {
  const found = await store.read(findQueuedItem, { id: id.toLowerCase() });
  if (found.kind !== 'found') return found;
  const { laneKey, number } = found;
  const actor: Actor = { ref, people: [], mayChangeAny: true, mayPromoteOwn: true };
  return { ...found, ...(await store.write(steps[verb], { laneKey, number, actor })) };
}
