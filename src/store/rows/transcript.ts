import { sql } from 'kysely';
import type { MessagePart } from '#contracts/message.ts';
import type { Tx } from '../base/command.ts';
import { newRowId } from '../base/keys.ts';
import { type ComputedColumns, changeRow, insertRow, plus } from '../base/row-access.ts';

export type NewMessage = {
  readonly id: string;
  readonly sessionId: string;
  readonly role: 'user' | 'assistant' | 'tool' | 'system';
  readonly parts: readonly MessagePart[];
  readonly note?: string | undefined;
  readonly model?: string | undefined;
  readonly runId?: string | undefined;
  readonly isFinished: boolean;
  readonly isSummary?: true;
  /** Usage of the model call that wrote it, added to the session's. */
  readonly charge?: Charge | undefined;
};

/** Usage of one model call: micro-dollars, and the tokens of the complete prompt and of the answer. */
export type Charge = {
  readonly cost: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
};

/** Appends to the session's transcript. The caller holds the lane's lock, which orders the positions. */
export async function appendMessage(tx: Tx, message: NewMessage): Promise<void> {
  const { sessionId, charge } = message;
  await changeRow(tx, 'sessions', sessionId, {
    messageCount: plus(1),
    updatedAt: tx.now,
    cost: charge && plus(charge.cost),
    promptTokens: charge?.promptTokens,
    completionTokens: charge?.completionTokens,
  });
  const row = {
    id: message.id,
    sessionId,
    role: message.role,
    parts: JSON.stringify(message.parts),
    note: message.note ?? null,
    model: message.model ?? null,
    unsendable: null,
    runId: message.runId ?? null,
    isFinished: message.isFinished ? 1 : 0,
    ...(message.isSummary && { isSummary: 1 }),
    createdAt: tx.now,
    updatedAt: tx.now,
  };
  await insertRow(tx, 'transcript', row, atTheEnd);
}

/** `messageCount` already includes the message. */
const atTheEnd = {
  position: (of) => sql`(select "messageCount" from "sessions" where "id" = ${of.sessionId})`,
} satisfies ComputedColumns;

/** Appends a note for the agent that starts no run: about an edit or a delete after the run. */
export async function appendNote(
  tx: Tx,
  note: { readonly sessionId: string; readonly text: string },
): Promise<void> {
  await appendMessage(tx, {
    id: newRowId(),
    sessionId: note.sessionId,
    role: 'system',
    parts: [{ type: 'text', data: { text: note.text } }],
    isFinished: true,
  });
}
