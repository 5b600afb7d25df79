/** Agents that an owner or an administrator has chosen in chat for a group, or for one of its topics. */
import type { Selectable } from 'kysely';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import type { BindingsTable } from '../base/routing-tables.ts';
import { ensureConversation } from './part.ts';

/** Where a binding applies; `thread` is empty for the conversation itself. */
export type BindingPlace = { readonly conversationKey: string; readonly thread: string };

export type StoredBinding = Readonly<Selectable<BindingsTable>>;

export type NewBinding = BindingPlace & { readonly agentId: string; readonly setBy: string };

/** Gives the place this agent, whichever it had. */
export async function setBinding(tx: Tx, binding: NewBinding): Promise<void> {
  // Intake reads the bindings with the conversation's row.
  await ensureConversation(tx, binding.conversationKey);
  const { agentId, setBy } = binding;
  const chosen = { agentId, setBy, setAt: tx.now };
  await tx.db
    .insertInto('bindings')
    .values({ ...binding, ...chosen })
    .onConflict((at) => at.columns(['conversationKey', 'thread']).doUpdateSet(chosen))
    .execute();
}

/** Takes the place's own agent back. Returns false if it had none. */
export async function clearBinding(tx: Tx, { conversationKey, thread }: BindingPlace): Promise<boolean> {
  const { numDeletedRows } = await tx.db
    .deleteFrom('bindings')
    .where('conversationKey', '=', conversationKey)
    .where('thread', '=', thread)
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0;
}

/** Moves the bindings of a conversation that has a new id. */
export async function moveBindings(tx: Tx, fromKey: string, toKey: string): Promise<void> {
  await tx.db.deleteFrom('bindings').where('conversationKey', '=', toKey).execute();
  await tx.db
    .updateTable('bindings')
    .set({ conversationKey: toKey })
    .where('conversationKey', '=', fromKey)
    .execute();
}

/** Removes a binding for an operator. Returns false if there is none; safe to repeat, since it deletes by key. */
export const removeBinding: StoreCommand<BindingPlace, boolean> = {
  name: 'removeBinding',
  run: clearBinding,
};

/** Reads the bindings, newest first. */
export const readBindings: StoreQuery<{ readonly limit: number }, readonly StoredBinding[]> = {
  query: 'readBindings',
  run: ({ db }, { limit }) =>
    db.selectFrom('bindings').selectAll().orderBy('setAt', 'desc').limit(limit).execute(),
};
