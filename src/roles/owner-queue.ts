import { atPage } from '../commands/pair.ts';
import { describeItemChange } from '../commands/queue.ts';
import { changeQueuedItem, type ItemOrder } from '../server/change-queued-item.ts';
import type { OwnerQueue, QueueChange } from '../server/queue-routes.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { readItemText, readQueuedItems } from '../store/reads/read-waiting-items.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';

const mostItems = 500;

export type OwnerQueueDeps = {
  readonly store: Store;
  readonly texts: ChatTexts;
  /** The IANA name of the time zone, which a reload may change. */
  readonly gate: { readonly timeZone: string };
  /** The accounts of the machine's user, `<channel>:<peer>`: those of the page and the terminal. */
  readonly people: readonly string[];
  /** Dispatches the effects of a commit. */
  start(effects: Effects): void;
  /** Called when a lane has changed, since no effect notifies its clients. */
  onChange(laneKey: string): void;
};

/** Provides the page's actions on waiting items, the same as `parley queue`. */
export function ownerQueue({ store, texts, gate, people, start, onChange }: OwnerQueueDeps): OwnerQueue {
  const change = async (id: string, order: ItemOrder): Promise<QueueChange> => {
    const item = await changeQueuedItem(store, { id, order, people, ref: atPage });
    if (item.kind !== 'found') return { kind: 'not-found' };
    const { laneKey, number, changed, effects } = item;
    start(effects);
    onChange(laneKey);
    const text = describeItemChange({ verb: order.verb, number, changed }, texts);
    if (changed.kind !== 'done' && changed.kind !== 'steered') return { kind: 'not-possible', text };
    const excerpt = changed.kind === 'done' ? { excerpt: changed.excerpt } : {};
    return { kind: 'done', item: { id: item.id, laneKey, number, ...excerpt, text } };
  };
  return {
    waiting: () => store.read(readQueuedItems, { limit: mostItems }),
    change: (verb, id) => change(id, { verb }),
    edit: (id, text) => change(id, { verb: 'edit', text, timeZone: gate.timeZone }),
    textOf: (id) => store.read(readItemText, { id }),
  };
}
