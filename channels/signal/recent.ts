import { keepRecent } from '#channel-kit/keep-recent.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { EventKey, MessageId } from '#contracts/ids.ts';
import type { MessageRef } from './ids.ts';
import { messageIdOf, readMessageId } from './ids.ts';

const mostKept = 2000;
/** As much of a message as a quote of it needs, in UTF-16 code units. */
const quoteLength = 200;

/**
 * Messages that this process received lately, in memory only: a restart costs names in mentions, texts in
 * quotes, and the way from an edit of an edit back to the message.
 */
export class RecentMessages {
  readonly #names = new Map<string, string>();
  readonly #texts = new Map<MessageId, string>();
  readonly #originals = new Map<MessageId, number>();
  readonly #keys = new Map<EventKey, true>();

  /** Takes note of what an event says, of each before the next one is read. */
  learn({ event, sender, sentAt }: InboundEnvelope): void {
    if (sender.name !== '') keepRecent(this.#names, mostKept, [sender.id, sender.name]);
    if (event.kind !== 'message' && event.kind !== 'edit') return;
    keepRecent(this.#texts, mostKept, [event.messageId, event.text.slice(0, quoteLength).toWellFormed()]);
    const original = event.kind === 'edit' ? readMessageId(event.messageId)?.timestamp : undefined;
    const edit = messageIdOf({ author: sender.id, timestamp: sentAt });
    if (original !== undefined) keepRecent(this.#originals, mostKept, [edit, original]);
  }

  /** Takes note of events that are safe. */
  hear(events: readonly { readonly eventKey: EventKey }[]): void {
    for (const { eventKey } of events) keepRecent(this.#keys, mostKept, [eventKey, true]);
  }

  nameOf(aci: string): string | undefined {
    return this.#names.get(aci);
  }

  /** The beginning of a message's text; empty when it is not known. */
  textOf(id: MessageId): string {
    return this.#texts.get(id) ?? '';
  }

  /** An edit is named by its own time; this is the time of what it edits. */
  originalOf(ref: MessageRef): number {
    return this.#originals.get(messageIdOf(ref)) ?? ref.timestamp;
  }

  hasHeard(key: EventKey): boolean {
    return this.#keys.has(key);
  }
}
