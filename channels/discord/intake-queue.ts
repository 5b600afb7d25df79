/**
 * Hands events to the intake in order and in batches, repeating each batch until it is stored. An anchor moves with
 * the events it covers, never before them.
 */
import { acceptUntilStored } from '#channel-kit/accept-until-stored.ts';
import type { UnreadableEvent } from '#channel-kit/event-mapping.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { ChannelDeps, InboundBatch, Intake } from '#contracts/channel.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { ConversationId } from '#contracts/ids.ts';
import { laterSnowflake } from './ids.ts';

export type Entry = {
  readonly events: readonly InboundEnvelope[];
  readonly unreadable?: UnreadableEvent;
  /** The conversation's anchor once these are stored. */
  readonly anchor?: { readonly conversation: ConversationId; readonly messageId: string };
  /** The anchor ends a stretch reported as missed; it is stored immediately, or the report would be repeated. */
  readonly isGap?: true;
  /** Called with the acceptance of each event. */
  readonly onAccepted?: (acceptances: readonly Acceptance[]) => void;
};

export type IntakeQueueDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly accept: Intake['accept'];
  /** Returns the cursor to store with a batch whose newest message this is; undefined leaves it as it is. */
  cursorFor(newest: string | undefined): string | undefined;
  /** Called when a batch has been stored. */
  onStored(batch: InboundBatch): void;
  /** Called when another process has started to receive for the account. */
  onTakenOver(): void;
};

const largestBatch = 100;

type WaitingEntry = { readonly entry: Entry; readonly stored: () => void };

export class IntakeQueue {
  readonly #deps: IntakeQueueDeps;
  readonly #waiting: WaitingEntry[] = [];
  readonly #stopped = new AbortController();
  #working: Promise<void> | undefined;

  constructor(deps: IntakeQueueDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when the last entry has been stored, or when the queue was stopped. Anchors without events or a gap
   * keep their place but wait for other entries: losing one only costs another read of the history.
   */
  push(entries: readonly Entry[]): Promise<void> {
    const last = entries.at(-1);
    if (this.#stopped.signal.aborted || last === undefined) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = () => undefined;
    this.#waiting.push(...entries.map((entry) => ({ entry, stored: entry === last ? resolve : done })));
    if (entries.every(isBare) && this.#waiting.length < largestBatch) resolve();
    else this.#working ??= this.#work();
    return promise;
  }

  /** Resolves when nothing more will be handed over. Events that weren't stored are read from history again. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#working;
  }

  async #work(): Promise<void> {
    // Events of one event-loop turn go into one batch.
    await Promise.resolve();
    while (this.#waiting.length > 0 && !this.#stopped.signal.aborted) {
      const batch = this.#waiting.splice(0, largestBatch);
      await this.#store(batch.map(({ entry }) => entry));
      for (const { stored } of batch) stored();
    }
    for (const { stored } of this.#waiting.splice(0)) stored();
    this.#working = undefined;
  }

  async #store(entries: readonly Entry[]): Promise<void> {
    const { clock, log, accept, cursorFor, onStored, onTakenOver } = this.#deps;
    const newest = entries.map(({ anchor }) => anchor?.messageId ?? '0').reduce(laterSnowflake, '0');
    const cursor = cursorFor(newest === '0' ? undefined : newest);
    const batch: InboundBatch = {
      ...batchOf(entries),
      ...(cursor === undefined ? {} : { cursor }),
    };
    const acceptances = await acceptUntilStored(batch, {
      accept,
      clock,
      log,
      channel: 'discord',
      signal: this.#stopped.signal,
      onTakenOver: () => {
        this.#stopped.abort();
        onTakenOver();
      },
    });
    if (acceptances === undefined) return;
    resolveEach(entries, acceptances);
    onStored(batch);
  }
}

function isBare({ events, unreadable, isGap }: Entry): boolean {
  return events.length === 0 && unreadable === undefined && isGap === undefined;
}

function batchOf(entries: readonly Entry[]): InboundBatch {
  const anchors = new Map<ConversationId, string>();
  for (const { anchor } of entries) {
    if (anchor === undefined) continue;
    const { conversation, messageId } = anchor;
    anchors.set(conversation, laterSnowflake(anchors.get(conversation) ?? '0', messageId));
  }
  const unreadable = entries.flatMap((entry) => entry.unreadable ?? []);
  return {
    events: entries.flatMap(({ events }) => events),
    ...(unreadable.length === 0 ? {} : { unreadable }),
    ...(anchors.size === 0 ? {} : { anchors }),
  };
}

function resolveEach(entries: readonly Entry[], acceptances: readonly Acceptance[]): void {
  let at = 0;
  for (const { events, onAccepted } of entries) {
    onAccepted?.(acceptances.slice(at, at + events.length));
    at += events.length;
  }
}
