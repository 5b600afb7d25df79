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

/** Networks tell times in whole seconds. */
const roundingMs = 1000;

/** Whether intake takes the text for a command if nothing else speaks against it. */
export function beginsLikeCommand({ event }: InboundEnvelope): boolean {
  return event.kind === 'message' && event.text.trimStart().startsWith('/');
}

/**
 * Whether the message goes on with a text that its sender's client has split: its sender wrote, or pasted, one text that
 * begins elsewhere, so this is no command.
 */
export async function continuesText(
  store: Pick<Store, 'read'>,
  { envelope, laneKey, joinMs }: ArrivingText,
): Promise<boolean> {
  const conversationKey = conversationKeyOf(envelope.route);
  const senderId = envelope.sender.id;
  const sentAt = await store.read(readSplitText, { laneKey, conversationKey, senderId });
  // Pieces that came before it in its batch are stored by now.
  return sentAt !== undefined && Math.abs(envelope.sentAt - sentAt) <= joinMs + roundingMs;
}
