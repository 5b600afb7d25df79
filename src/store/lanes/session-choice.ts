import type { Tx } from '../base/command.ts';
import { changeRow, findRow } from '../base/row-by-key.ts';

/** A session's own model and reasoning; null means the agent's default. */
export type SessionChoice = { readonly model: string | null; readonly reasoning: string | null };

/** Reads the session's choice. */
export async function readChoice(tx: Tx, sessionId: string): Promise<SessionChoice> {
  const row = await findRow(tx, 'sessions', sessionId, ['model', 'reasoning']);
  return row ?? { model: null, reasoning: null };
}

/** Sets the given values for runs that begin from now on. Safe to repeat. The caller must hold the lane's lock. */
export async function setChoice(tx: Tx, sessionId: string, choice: Partial<SessionChoice>): Promise<void> {
  const { model, reasoning } = choice;
  await changeRow(tx, 'sessions', sessionId, { model, reasoning });
}
