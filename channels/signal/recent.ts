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

  /** Takes note of events in the order in which they came. */
  learn(
    events: readonly InboundEnvelope[],
    unreadable: readonly { readonly eventKey: EventKey }[] = [],
  ): void {
    for (const { eventKey } of unreadable) keep(this.#keys, eventKey, true);
    for (const { eventKey, event, sender, sentAt } of events) {
      keep(this.#keys, eventKey, true);
      if (sender.name !== '') keep(this.#names, sender.id, sender.name);
      if (event.kind !== 'message' && event.kind !== 'edit') continue;
      keep(this.#texts, event.messageId, event.text.slice(0, quoteLength).toWellFormed());
      const original = event.kind === 'edit' ? readMessageId(event.messageId)?.timestamp : undefined;
      const edit = messageIdOf({ author: sender.id, timestamp: sentAt });
      if (original !== undefined) keep(this.#originals, edit, original);
    }
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

/** The oldest goes when there are too many. */
function keep<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.size > mostKept ? map.keys().next() : undefined;
  if (oldest?.done === false) map.delete(oldest.value);
}
