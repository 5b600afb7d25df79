import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { Store } from '../store/base/command.ts';
import { conversationKeyOf } from '../store/base/conversation-key.ts';
import { readSplitText } from '../store/intake/split-text.ts';

type ArrivingText = {
  readonly envelope: InboundEnvelope;
  readonly laneKey: string;
  /** Events of the same batch that came before it, not stored yet. */
  readonly before: readonly InboundEnvelope[];
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
  { envelope, laneKey, before, joinMs }: ArrivingText,
): Promise<boolean> {
  const isClose = (sentAt: number) => Math.abs(envelope.sentAt - sentAt) <= joinMs + roundingMs;
  const conversationKey = conversationKeyOf(envelope.route);
  const isPiece = (one: InboundEnvelope) =>
    one.event.kind === 'message' &&
    one.event.mayContinue === true &&
    one.sender.id === envelope.sender.id &&
    conversationKeyOf(one.route) === conversationKey &&
    isClose(one.sentAt);
  if (before.some(isPiece)) return true;
  const senderId = envelope.sender.id;
  const sentAt = await store.read(readSplitText, { laneKey, conversationKey, senderId });
  return sentAt !== undefined && isClose(sentAt);
}
