import type { Acceptance } from '#contracts/acceptance.ts';
import type { ChannelGap, ChannelTrouble, InboundBatch, Intake } from '#contracts/channel.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { type ErrorCode, ParleyError } from '#contracts/errors.ts';
import { type ConversationId, inboxId, type SessionKey } from '#contracts/ids.ts';
import { patienceMs as usualPatienceMs } from '../support/patience.ts';

type Stored = {
  readonly events: InboundEnvelope[];
  readonly keys: Set<string>;
  readonly anchors: Map<ConversationId, string>;
  cursor: string | undefined;
};

/**
 * The intake as an adapter sees it. It records what it is given: each event key once, the cursor together with its
 * batch, nothing from a batch that was refused. `restarted()` is the intake after a crash.
 */
export class RecordingIntake implements Intake {
  readonly #stored: Stored;
  readonly batches: InboundBatch[] = [];
  readonly troubles: (ChannelTrouble | undefined)[] = [];
  readonly names: string[] = [];
  readonly gaps: ChannelGap[] = [];
  readonly #faults: ErrorCode[] = [];
  readonly #waiters = new Set<() => void>();
  readonly #patienceMs: number;
  #gate: Promise<void> | undefined;
  attempts = 0;
  heldUntil: number | undefined;

  /** `patienceMs`: how long `waitFor` waits. */
  constructor(
    stored: Stored = { events: [], keys: new Set(), anchors: new Map(), cursor: undefined },
    patienceMs = usualPatienceMs,
  ) {
    this.#stored = stored;
    this.#patienceMs = patienceMs;
  }

  get cursor(): string | undefined {
    return this.#stored.cursor;
  }

  get anchors(): ReadonlyMap<ConversationId, string> {
    return new Map(this.#stored.anchors);
  }

  /** The stored events, each once, in order. */
  get events(): readonly InboundEnvelope[] {
    return this.#stored.events;
  }

  get unreadable() {
    return this.batches.flatMap((batch) => batch.unreadable ?? []);
  }

  get texts(): readonly string[] {
    return this.events.flatMap(({ event }) => (event.kind === 'message' ? [event.text] : []));
  }

  async accept(batch: InboundBatch): Promise<readonly Acceptance[]> {
    this.attempts += 1;
    this.#changed();
    await this.#gate;
    const fault = this.#faults.shift();
    if (fault !== undefined) throw new ParleyError(fault, `the intake is told to fail: ${fault}`);
    this.batches.push(batch);
    if (batch.cursor !== undefined) this.#stored.cursor = batch.cursor;
    for (const [conversation, anchor] of batch.anchors ?? []) this.#stored.anchors.set(conversation, anchor);
    const answers = batch.events.map((envelope) => this.#store(envelope));
    this.#changed();
    return answers;
  }

  trouble(problem: ChannelTrouble | undefined): void {
    this.troubles.push(problem);
    this.#changed();
  }

  renamed(name: string): void {
    this.names.push(name);
    this.#changed();
  }

  gap(gap: ChannelGap): void {
    this.gaps.push(gap);
    this.#changed();
  }

  failNext(code: ErrorCode, times = 1): void {
    for (let count = 0; count < times; count += 1) this.#faults.push(code);
  }

  /** Clears the faults set by `failNext`. */
  recover(): void {
    this.#faults.length = 0;
  }

  /** Holds every `accept` back until the returned function is called. */
  hold(): () => void {
    const gate = Promise.withResolvers<void>();
    this.#gate = gate.promise;
    return () => {
      this.#gate = undefined;
      gate.resolve();
    };
  }

  /** Returns what a new process finds: the same rows and cursor, none of the faults. */
  restarted(): RecordingIntake {
    return new RecordingIntake(this.#stored, this.#patienceMs);
  }

  /** Resolves with the first value of `probe` that isn't undefined or false. Rejects after `deadlineMs`. */
  waitFor<T>(probe: () => T | undefined | false, deadlineMs = this.#patienceMs): Promise<T> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const value = probe();
        if (value === undefined || value === false) return;
        clearTimeout(timer);
        this.#waiters.delete(check);
        resolve(value);
      };
      const timer = setTimeout(() => {
        this.#waiters.delete(check);
        const kinds = this.events.map(({ event }) => event.kind).join(', ');
        reject(new Error(`intake: nothing matched within ${deadlineMs} ms; stored: ${kinds || 'nothing'}`));
      }, deadlineMs);
      this.#waiters.add(check);
      check();
    });
  }

  #store(envelope: InboundEnvelope): Acceptance {
    if (this.#stored.keys.has(envelope.eventKey)) {
      return { kind: 'duplicate', of: { outcome: 'accepted', reason: undefined } };
    }
    this.#stored.keys.add(envelope.eventKey);
    this.#stored.events.push(envelope);
    return { kind: 'accepted', inboxId: inboxId(envelope.eventKey), sessionKey: 'test' as SessionKey };
  }

  #changed(): void {
    for (const check of [...this.#waiters]) check();
  }
}
