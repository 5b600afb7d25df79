import { atPage } from '../commands/pair.ts';
import { describeItemChange } from '../commands/queue.ts';
import { changeQueuedItem } from '../server/change-queued-item.ts';
import type { OwnerQueue } from '../server/queue-routes.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { readQueuedItems } from '../store/reads/read-waiting-items.ts';
import type { Notices } from '../texts/notices.ts';

const mostItems = 500;

/** The calls on what waits, as `parley queue` has them. `start` begins what a commit made due. */
export function ownerQueue({
  store,
  notices,
  start,
}: {
  readonly store: Store;
  readonly notices: Notices;
  start(effects: Effects): void;
}): OwnerQueue {
  return {
    waiting: () => store.read(readQueuedItems, { limit: mostItems }),
    change: async (verb, id) => {
      const item = await changeQueuedItem(store, { verb, id, ref: atPage });
      if (item.kind !== 'found') return { kind: 'not-found' };
      const { laneKey, number, changed, effects } = item;
      start(effects);
      if (changed.kind !== 'done')
        return { kind: 'not-possible', text: describeItemChange({ verb, number, changed }, notices) };
      return { kind: 'done', item: { id: item.id, laneKey, number, excerpt: changed.excerpt } };
    },
  };
}
