import { keepRecent } from '#channel-kit/keep-recent.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { EventKey, MessageId } from '#contracts/ids.ts';
import type { MessageRef } from './ids.ts';
import { messageIdOf, readMessageId } from './ids.ts';

const maxKept = 2000;
/** How much of a message a quote needs, in UTF-16 code units. */
const quoteLength = 200;

/**
 * Messages that this process received recently, in memory only: a restart costs names in mentions, texts in quotes, and
 * the link from an edit of an edit to the original message.
 */
export class RecentMessages {
  readonly #names = new Map<string, string>();
  readonly #texts = new Map<MessageId, string>();
  readonly #originals = new Map<MessageId, number>();
  readonly #keys = new Map<EventKey, true>();

  /** Learns from an event; call it for each before the next one is read. */
  learn({ event, sender, sentAt }: InboundEnvelope): void {
    if (sender.name !== '') keepRecent(this.#names, maxKept, [sender.id, sender.name]);
    if (event.kind !== 'message' && event.kind !== 'edit') return;
    keepRecent(this.#texts, maxKept, [event.messageId, event.text.slice(0, quoteLength).toWellFormed()]);
    const original = event.kind === 'edit' ? readMessageId(event.messageId)?.timestamp : undefined;
    const edit = messageIdOf({ author: sender.id, timestamp: sentAt });
    if (original !== undefined) keepRecent(this.#originals, maxKept, [edit, original]);
  }

  /** Records events that are safe. */
  hear(events: readonly { readonly eventKey: EventKey }[]): void {
    for (const { eventKey } of events) keepRecent(this.#keys, maxKept, [eventKey, true]);
  }

  nameOf(aci: string): string | undefined {
    return this.#names.get(aci);
  }

  /** Returns the beginning of a message's text; empty if it isn't known. */
  textOf(id: MessageId): string {
    return this.#texts.get(id) ?? '';
  }

  /** Returns the time of the original message: an edit is identified by its own time. */
  originalOf(ref: MessageRef): number {
    return this.#originals.get(messageIdOf(ref)) ?? ref.timestamp;
  }

  hasHeard(key: EventKey): boolean {
    return this.#keys.has(key);
  }
}
