import { type Authority, lowestAuthority } from '#contracts/outcome.ts';
import type { StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { enqueueItem } from '../items/enqueue-item.ts';
import { lockLane } from '../rows/lane.ts';
import { innerContent, lockLineage, readChild } from './child.ts';
import { lockBelow, readLive, stopBranch } from './stop-tree.ts';

/** Result of an action on a child. `ended`: the child is no longer live. */
export type OperatedChild = { readonly kind: 'done' | 'ended' | 'unknown'; readonly effects: Effects };

/** Locks the child's lane, along with those above and below it. */
export async function lockBranch(tx: Tx, childId: string): Promise<void> {
  const child = tx.dialect === 'postgres' ? await readChild(tx, childId) : undefined;
  if (!child) return;
  await lockLineage(tx, child.laneKey);
  await lockBelow(tx, [childId]);
}

/** Stops one child and all below it; its parent is notified. Repeating it changes nothing. */
export const stopChild: StoreCommand<
  { readonly childId: string },
  OperatedChild & { readonly stopped: number }
> = {
  name: 'stopChild',
  run: async (tx, { childId }) => {
    const effects = noEffects();
    const seen = await readChild(tx, childId);
    if (!seen) return { kind: 'unknown', effects, stopped: 0 };
    await lockLineage(tx, seen.laneKey);
    const child = await readLive(tx, childId);
    if (!child) return { kind: 'ended', effects, stopped: 0 };
    const { queued, active } = await stopBranch(tx, child, 'asked', effects);
    return { kind: 'done', effects, stopped: queued + active };
  },
};

export type SteeredChild = {
  readonly childId: string;
  /** Who sends it: `<channel>:<peer>`, `console` or the parent's lane. */
  readonly by: string;
  /** Unique; a repeat under one id adds nothing. */
  readonly id: string;
  readonly text: string;
  /** The sender's authority. It never gives the child more than the child has. */
  readonly authority: Authority;
};

/** `lesser-rights`: the child has more rights than the sender, so their message would have to lower them. */
export type SteerResult = Omit<OperatedChild, 'kind'> & {
  readonly kind: OperatedChild['kind'] | 'lesser-rights';
};

/** Sends a message to a child: its run takes it at the next boundary. */
export const steerChild: StoreCommand<SteeredChild, SteerResult> = {
  name: 'steerChild',
  run: async (tx, { childId, id, text, authority, by }) => {
    const effects = noEffects();
    const seen = await readChild(tx, childId);
    if (!seen) return { kind: 'unknown', effects };
    await lockLane(tx, seen.laneKey);
    const child = await readLive(tx, childId);
    if (!child || child.stopAt !== null) return { kind: 'ended', effects };
    if (!mayDirect(authority, child)) return { kind: 'lesser-rights', effects };
    const content = { ...innerContent(tx, text), sender: { id: by, name: by } };
    await enqueueItem(
      tx,
      { key: child.laneKey },
      {
        ...{ id, reach: 'always', target: 'record', content },
        // The store wrote it at the spawn.
        authority: child.authority as Authority,
        ...{ source: 'child', sourceKey: `steer:${id}` },
      } as const,
      effects,
    );
    return { kind: 'done', effects };
  },
};

/** Says whether that authority has all rights of the child. */
export function mayDirect(authority: Authority, child: { readonly authority: string }): boolean {
  return lowestAuthority(authority, child.authority as Authority) === child.authority;
}
