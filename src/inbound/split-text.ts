import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { Store } from '../store/base/command.ts';
import { conversationKeyOf } from '../store/base/conversation-key.ts';
import { readSplitText } from '../store/intake/split-text.ts';

type ArrivingText = {
  readonly envelope: InboundEnvelope;
  readonly laneKey: string;
  /** How long the pieces of a text are joined, ms. */
  readonly joinMs: number;
};

/** Networks report times in whole seconds. */
const roundingMs = 1000;

/** Says whether the text begins like a command, so that intake treats it as one unless something prevents that. */
export function beginsLikeCommand({ event }: InboundEnvelope): boolean {
  return event.kind === 'message' && event.text.trimStart().startsWith('/');
}

/**
 * Says whether the message continues a text that its sender's client has split. The sender wrote or pasted one text
 * that begins in an earlier message, so this isn't a command.
 */
export async function continuesText(
  store: Pick<Store, 'read'>,
  { envelope, laneKey, joinMs }: ArrivingText,
): Promise<boolean> {
  const conversationKey = conversationKeyOf(envelope.route);
  const senderId = envelope.sender.id;
  const sentAt = await store.read(readSplitText, { laneKey, conversationKey, senderId });
  // Earlier pieces in the same batch are already stored.
  return sentAt !== undefined && Math.abs(envelope.sentAt - sentAt) <= joinMs + roundingMs;
}
