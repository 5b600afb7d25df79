/**
 * Changes to waiting messages: cancel, promote, edit. Each step locks the lane's row first and is a conditional update
 * of the waiting row. A step that finds the row taken or ended reports so, or has the effect of a platform deletion or
 * edit of the message, in the same transaction. Chat, page and command line use the same steps. Every change to a
 * message is recorded in `itemChanges`.
 */

import type { Selectable } from 'kysely';
import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { newRowId } from '../base/keys.ts';
import { oneLine } from '../base/one-line.ts';
import { insertRow } from '../base/row-access.ts';
import type { InboxTable, ItemChangesTable } from '../base/tables.ts';
import { type Lane, lockLane } from '../rows/lane.ts';

export type ItemRow = Selectable<InboxTable>;

/** A message by its number, which is its sequence number in the lane: it never changes and is never reused. */
export type ItemAsked = { readonly number: number; readonly actor: Actor };

/** Result of a change to an item. */
export type ItemChangeResult =
  | { readonly kind: 'done'; readonly excerpt: string }
  /** The active run works on it and receives the correction. */
  | { readonly kind: 'steered' }
  /** The active run works on it, so only a stop would still help. */
  | { readonly kind: 'working' }
  | { readonly kind: 'ended'; readonly outcome: string }
  /** A lane command keeps its text and place; it can only be cancelled. */
  | { readonly kind: 'kept' }
  /** A `/new` waits before it, which no item overtakes. */
  | { readonly kind: 'behind' }
  | { readonly kind: 'not-permitted' }
  | { readonly kind: 'unknown' };

export type ItemStep<Asked> = StoreCommand<
  Asked & { readonly laneKey: string },
  { readonly changed: ItemChangeResult; readonly effects: Effects }
>;

/** Makes a separate step of `act`, which runs inside a step under the lane's lock. */
export function itemStep<Asked>(
  name: string,
  act: (tx: StepTx, lane: Lane, asked: Asked & { readonly effects: Effects }) => Promise<ItemChangeResult>,
): ItemStep<Asked> {
  return {
    name,
    run: async (tx, asked) => {
      const effects = noEffects();
      const lane = await lockLane(tx, asked.laneKey);
      const changed: ItemChangeResult = lane
        ? await act(tx, lane, { ...asked, effects })
        : { kind: 'unknown' };
      return { changed, effects };
    },
  };
}

export function findItem(tx: Tx, lane: Lane, number: number): Promise<ItemRow | undefined> {
  return tx.db
    .selectFrom('inbox')
    .selectAll()
    .where('laneKey', '=', lane.key)
    .where('seq', '=', number)
    .executeTakeFirst();
}

/**
 * Returns `<channel>:<peer>`, or the source, such as `api`, if no person sent it. Account keys begin with the channel.
 */
export function senderRef({ account, senderId }: Pick<ItemRow, 'account' | 'senderId'>): string {
  return senderId === '' ? account : `${account.split('/')[0]}:${senderId}`;
}

export function isOwn(actor: Actor, row: Pick<ItemRow, 'account' | 'senderId'>): boolean {
  return actor.people.includes(senderRef(row));
}

export function mayChange(actor: Actor, row: Pick<ItemRow, 'account' | 'senderId'>): boolean {
  return actor.mayChangeAny || isOwn(actor, row);
}

/** Returns the result for an item that is no longer waiting. */
export function tooLateResult(row: Pick<ItemRow, 'state' | 'outcome'>): ItemChangeResult {
  return row.state === 'taken' ? { kind: 'working' } : { kind: 'ended', outcome: row.outcome ?? 'ended' };
}

export async function recordChange(
  tx: Tx,
  change: Pick<ItemChangesTable, 'laneKey' | 'inboxId' | 'kind' | 'by'>,
): Promise<void> {
  await insertRow(tx, 'itemChanges', { id: newRowId(), ...change, at: tx.now });
}

/** Wakes an idle lane, whose items may now be due. A working lane checks on its own. */
export function wakeIfIdle(tx: Tx, lane: Lane, effects: Pick<Effects, 'wakes'>): void {
  if (lane.runId !== null && lane.leaseUntil > tx.now) return;
  effects.wakes.push({ laneKey: lane.key, class: lane.class, delayMs: 0 });
}

/** Who asks for a change to waiting items. */
export type Actor = {
  /** `<channel>:<peer>` or `console`, as recorded. */
  readonly ref: string;
  /** All of their accounts, `<channel>:<peer>`, whose messages count as their own. */
  readonly people: readonly string[];
  /** True for owners and, in groups, administrators, who may change anybody's messages. */
  readonly mayChangeAny: boolean;
  /** True for administrators who aren't owners, since other people's messages run with their senders' rights. */
  readonly mayRewordOwnOnly?: true;
  /** True in a direct conversation, where one's own messages may be moved up; in a group that would delay others. */
  readonly mayPromoteOwn: boolean;
  /** Where the change was requested, so that everybody there sees it; absent on the page and the command line. */
  readonly conversationKey?: string;
};

/** Returns the beginning of a message's current text, on one line; '' for a message that is only files. */
export function excerptOf({ content }: { readonly content: string }): string {
  return oneLine(json.content(content).text);
}
