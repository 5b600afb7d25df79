/** Changes of what waits, as a command of the chat: what each comes to, for its answer. */
import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import type { Actor } from '../items/actor.ts';
import { cancel, cancelAll } from '../items/cancel-item.ts';
import { edit } from '../items/edit-item.ts';
import type { Changed, ItemChange } from '../items/item-change.ts';
import { promote } from '../items/promote-item.ts';
import type { Lane } from '../rows/lane-row.ts';
import type { CommandFinding } from './proposal.ts';

type Changing = { readonly actor: Actor; readonly change: ItemChange; readonly effects: Effects };
type Finding = {
  readonly found: CommandFinding;
  readonly values: Readonly<Record<string, string | number>>;
};

export async function changeItem(tx: Tx, lane: Lane, { change, ...by }: Changing): Promise<Finding> {
  if (change.kind === 'cancel-all') {
    const count = await cancelAll(tx, lane, { ...change, ...by });
    return { found: count > 0 ? 'done' : 'nothing', values: { count } };
  }
  const { number } = change;
  const changed = await carryOut(tx, lane, { change, ...by });
  const found = foundAs[changed.kind];
  if (changed.kind === 'done') return { found, values: { number, excerpt: changed.excerpt } };
  return { found, values: changed.kind === 'ended' ? { number, outcome: changed.outcome } : { number } };
}

const foundAs: Readonly<Record<Changed['kind'], CommandFinding>> = {
  done: 'done',
  steered: 'steered',
  working: 'working',
  ended: 'ended',
  kept: 'kept',
  behind: 'behind',
  'not-permitted': 'notPermitted',
  unknown: 'nothing',
};

type OfOne = Omit<Changing, 'change'> & {
  readonly change: Exclude<ItemChange, { readonly kind: 'cancel-all' }>;
};

async function carryOut(tx: Tx, lane: Lane, { change, ...by }: OfOne): Promise<Changed> {
  switch (change.kind) {
    case 'cancel':
      return cancel(tx, lane, { ...change, ...by });
    case 'promote':
      return promote(tx, lane, { ...change, ...by });
    case 'edit':
      return edit(tx, lane, { ...change, ...by });
    default:
      return change satisfies never;
  }
}
