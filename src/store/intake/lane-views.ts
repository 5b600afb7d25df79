/** Views of the lanes that a batch's items enter, read for all of them at once. */
import type { Tx } from '../base/command.ts';
import { readUnreachable } from '../delivery/reachability.ts';
import { type OpenItem, readOpenItems, readOpenItemsOf } from '../items/open-items.ts';
import { type Lane, lockAndReadLanes, lockLane } from '../rows/lane-row.ts';

/** A lane, locked, and what is open in it; no lane when there is none yet. */
export type LaneView = { readonly lane: Lane | undefined; readonly open: readonly OpenItem[] };

/**
 * The lanes' views, read under their locks. Each counts once, since the item that it lets in changes what it shows;
 * a lane's second item has another one read.
 */
export class LaneViews {
  readonly #views: Map<string, LaneView>;
  #unreachable: ReadonlySet<string> | undefined;

  constructor(views: ReadonlyMap<string, LaneView>, unreachable: ReadonlySet<string>) {
    this.#views = new Map(views);
    this.#unreachable = unreachable;
  }

  async take(tx: Tx, laneKey: string): Promise<LaneView> {
    const view = this.#views.get(laneKey);
    this.#views.delete(laneKey);
    return view ?? readView(tx, laneKey);
  }

  /** Whether the conversation may count as one that can't be reached. */
  mayBeUnreachable(conversationKey: string): boolean {
    return this.#unreachable?.has(conversationKey) ?? true;
  }

  /** Behind an event that may have changed any lane. */
  forget(): void {
    this.#views.clear();
    this.#unreachable = undefined;
  }
}

async function readView(tx: Tx, laneKey: string): Promise<LaneView> {
  const [lane, open] = await Promise.all([lockLane(tx, laneKey), readOpenItems(tx, laneKey)]);
  return { lane, open };
}

/** Locks the lanes and reads their views; conversations are those that are written from. */
export async function readLaneViews(
  tx: Tx,
  laneKeys: readonly string[],
  conversations: readonly string[],
): Promise<LaneViews> {
  if (laneKeys.length === 0) return new LaneViews(new Map(), new Set());
  const [lanes, open, unreachable] = await Promise.all([
    lockAndReadLanes(tx, laneKeys),
    readOpenItemsOf(tx, laneKeys),
    readUnreachable(tx, conversations),
  ]);
  const byKey = new Map(lanes.map((lane) => [lane.key, lane]));
  const openIn = Map.groupBy(open, ({ laneKey }) => laneKey);
  const viewOf = (key: string): LaneView => ({ lane: byKey.get(key), open: openIn.get(key) ?? [] });
  return new LaneViews(new Map(laneKeys.map((key) => [key, viewOf(key)])), new Set(unreachable));
}
