import type { MessagePart } from '#contracts/message.ts';
import type { Tx } from '../command.ts';

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
  const session = await tx.db
    .updateTable('sessions')
    .set((eb) => ({ messageCount: eb('messageCount', '+', 1), updatedAt: tx.now }))
    .where('id', '=', message.sessionId)
    .returning('messageCount')
    .executeTakeFirstOrThrow();
  await tx.db
    .insertInto('transcript')
    .values({
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
    })
    .execute();
}

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
