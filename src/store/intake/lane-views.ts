/** Views of the lanes that a batch's items enter, all read together. */
import { ParleyError } from '#contracts/errors.ts';
import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import type { LaneRef, LaneSpec } from '../base/keys.ts';
import { markReachable, readUnreachable } from '../delivery/conversation.ts';
import { type OpenItem, readOpenItems, readOpenItemsOf } from '../items/waiting-items.ts';
import { type Lane, lockLane, lockOrMakeLanes, makeLane } from '../rows/lane.ts';
import type { AcceptInput, Proposal } from './proposal.ts';

/** A locked lane and its open items. */
export type LaneView = { readonly lane: Lane; readonly open: readonly OpenItem[] };

/**
 * The lanes' views, read under their locks. Each is valid once, since the item that uses it changes the lane; for a
 * lane's second item the view is read again.
 */
export class LaneViews {
  readonly #views: Map<string, LaneView>;
  #unreachable: ReadonlySet<string> | undefined;
  #hasReached = false;

  constructor(views: ReadonlyMap<string, LaneView>, unreachable: ReadonlySet<string>) {
    this.#views = new Map(views);
    this.#unreachable = unreachable;
  }

  async take(tx: Tx, laneKey: string): Promise<LaneView> {
    const view = this.#views.get(laneKey);
    this.#views.delete(laneKey);
    return view ?? readView(tx, laneKey);
  }

  /** Creates missing lanes, before anything is locked that must be locked after lanes. */
  async makeMissing(tx: Tx, specs: readonly LaneSpec[]): Promise<void> {
    for (const spec of specs) {
      if (this.#views.has(spec.key)) continue;
      const lane = await makeLane(tx, spec);
      // Creating the lane may have waited for another step that creates it, whose items weren't read yet.
      this.#views.set(spec.key, { lane, open: await readOpenItems(tx, spec.key) });
    }
  }

  /** Says whether a conversation marked unreachable was marked reachable again, and is therefore locked. */
  get hasReached(): boolean {
    return this.#hasReached;
  }

  /** Marks the conversation as reachable, since somebody writes in it, despite any earlier failure. */
  async reach(tx: Tx, conversationKey: string): Promise<void> {
    const mayBeUnreachable = this.#unreachable?.has(conversationKey) ?? true;
    if (mayBeUnreachable && (await markReachable(tx, conversationKey))) this.#hasReached = true;
  }

  /** Discards all views. Call it after an event that may have changed any lane. */
  forget(): void {
    this.#views.clear();
    this.#unreachable = undefined;
  }
}

async function readView(tx: Tx, laneKey: string): Promise<LaneView> {
  const [lane, open] = await Promise.all([lockLane(tx, laneKey), readOpenItems(tx, laneKey)]);
  if (!lane) throw new ParleyError('internal', `Lane ${laneKey} was not made.`);
  return { lane, open };
}

/** Locks the lanes and reads the views of those that exist. The messages come from `conversations`. */
export async function readLaneViews(
  tx: Tx,
  refs: readonly LaneRef[],
  conversations: readonly string[],
): Promise<LaneViews> {
  if (refs.length === 0) return new LaneViews(new Map(), new Set());
  const [lanes, open, unreachable] = await Promise.all([
    lockOrMakeLanes(tx, refs),
    readOpenItemsOf(tx, [...new Set(refs.map(({ key }) => key))]),
    readUnreachable(tx, conversations),
  ]);
  const openIn = Map.groupBy(open, ({ laneKey }) => laneKey);
  const views = lanes.map((lane) => [lane.key, { lane, open: openIn.get(lane.key) ?? [] }] as const);
  return new LaneViews(new Map(views), new Set(unreachable));
}

/** One event being accepted, with the batch's shared input and the place where its effects are collected. */
export type AcceptEventInput = {
  readonly input: AcceptInput;
  readonly proposal: Proposal;
  readonly effects: Effects;
  readonly views: LaneViews;
};
