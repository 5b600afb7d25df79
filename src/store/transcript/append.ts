import type { MessagePart } from '#contracts/message.ts';
import type { Tx } from '../command.ts';
import { insertRow } from '../insert-row.ts';
import { prepared, type Slots } from '../prepared.ts';

export type NewMessage = {
  readonly id: string;
  readonly sessionId: string;
  readonly role: 'user' | 'assistant' | 'tool' | 'system';
  readonly parts: readonly MessagePart[];
  readonly model?: string | undefined;
  readonly runId?: string | undefined;
  readonly isFinished: boolean;
};

/** Appends to the session's transcript. The caller holds the lane's lock, which orders the positions. */
export async function appendMessage(tx: Tx, message: NewMessage): Promise<void> {
  const session = await countMessage.one(tx, { sessionId: message.sessionId, now: tx.now });
  await insertRow(tx, 'transcript', {
    id: message.id,
    sessionId: message.sessionId,
    position: session.messageCount,
    role: message.role,
    parts: JSON.stringify(message.parts),
    model: message.model ?? null,
    runId: message.runId ?? null,
    isFinished: message.isFinished ? 1 : 0,
    createdAt: tx.now,
    updatedAt: tx.now,
  });
}

const countMessage = prepared((db, of: Slots<{ sessionId: string; now: number }>) =>
  db
    .updateTable('sessions')
    .set((eb) => ({ messageCount: eb('messageCount', '+', 1), updatedAt: of.now }))
    .where('id', '=', of.sessionId)
    .returning('messageCount'),
);

/** A note for the agent that starts nothing: an edit or a delete after the run. */
export async function appendNote(
  tx: Tx,
  note: { readonly sessionId: string; readonly text: string },
): Promise<void> {
  await appendMessage(tx, {
    id: crypto.randomUUID(),
    sessionId: note.sessionId,
    role: 'system',
    parts: [{ type: 'text', data: { text: note.text } }],
    isFinished: true,
  });
}
