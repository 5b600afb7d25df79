import { expect } from 'vitest';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { InboundEnvelope, InboundEvent } from '#contracts/envelope.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import { type MessageId, partKey } from '#contracts/ids.ts';
import type { OutboundContent, SendResult } from '#contracts/outbound.ts';
import { RecordingIntake } from '../recording-intake.ts';
import type { ChannelHarness } from './harness.ts';

/** Thrown by a check when the platform lacks a control that it needs; the check is then skipped. */
export class NotPlayed extends Error {}

export type Kind = InboundEvent['kind'];
export type EnvelopeOf<K extends Kind> = InboundEnvelope & {
  readonly event: Extract<InboundEvent, { kind: K }>;
};

export type Times = {
  /** How long a check waits for something that must happen, ms. */
  readonly patienceMs: number;
  /** How long it watches for something that must not happen, ms. */
  readonly watchMs: number;
};

/** One adapter on one platform, for the duration of one check. */
export class Trial {
  readonly harness: ChannelHarness;
  readonly #patienceMs: number;
  readonly #watchMs: number;
  readonly signal = new AbortController().signal;
  adapter: ChannelAdapter;
  intake: RecordingIntake;

  constructor(harness: ChannelHarness, { patienceMs, watchMs }: Times) {
    this.harness = harness;
    this.#patienceMs = patienceMs;
    this.#watchMs = watchMs;
    this.adapter = harness.newAdapter();
    this.intake = new RecordingIntake(undefined, patienceMs);
  }

  /** Returns the control, or ends the check if the platform lacks it. */
  need<Hand>(hand: Hand | undefined): Hand {
    if (hand === undefined) throw new NotPlayed('the platform cannot play this');
    return hand;
  }

  /** Ends the check if the network doesn't do what the check is about. */
  only(isPlayed: boolean): void {
    if (!isPlayed) throw new NotPlayed('the network does not do this');
  }

  async begin(): Promise<void> {
    await this.adapter.identify(this.signal);
    await this.adapter.start(this.intake);
  }

  /** Ends the process and starts another one; rows, cursor and anchors are kept. */
  async restart(meanwhile: () => Promise<void> = async () => undefined): Promise<void> {
    await this.adapter.stop();
    await meanwhile();
    this.intake = this.intake.restarted();
    this.adapter = this.harness.newAdapter();
    await this.begin();
  }

  /** Waits until exactly this many messages are stored. */
  async untilTexts(count: number): Promise<void> {
    await this.intake.waitFor(() => this.intake.texts.length === count);
  }

  /** Resolves with the first stored event of a kind. */
  first<K extends Kind>(kind: K): Promise<EnvelopeOf<K>> {
    return this.intake.waitFor(() => this.all(kind)[0]);
  }

  all<K extends Kind>(kind: K): readonly EnvelopeOf<K>[] {
    // The filter has checked the kind.
    return this.intake.events.filter(({ event }) => event.kind === kind) as EnvelopeOf<K>[];
  }

  send(content: OutboundContent, signal = this.signal): Promise<SendResult> {
    return this.adapter.send({ key: partKey('run-1:1:a'), route: this.harness.route, content }, signal);
  }

  /** Sends with its own key, so that it doesn't count as a repeat of another send. */
  sendReply(text: string, replyTo: MessageId): Promise<SendResult> {
    const content = { kind: 'text', text: plainText(text) } as const;
    const outbound = { key: partKey(`run-1:1:${text}`), route: { ...this.harness.route, replyTo }, content };
    return this.adapter.send(outbound, this.signal);
  }

  sendText(text: FormattedText | string, signal?: AbortSignal): Promise<SendResult> {
    return this.send({ kind: 'text', text: typeof text === 'string' ? plainText(text) : text }, signal);
  }

  /** Returns the one receipt of a successful send. */
  receiptOf(result: SendResult): MessageId {
    expect(result.kind).toBe('sent');
    const [receipt] = result.kind === 'sent' ? result.receipts : [];
    if (receipt === undefined) throw new Error('the send left no receipt');
    return receipt;
  }

  async standingTexts(): Promise<readonly string[]> {
    return (await this.harness.standing()).map(({ text }) => text);
  }

  /** Waits for something that no stored event announces. */
  async until(claim: () => boolean, what: string): Promise<void> {
    const deadline = Date.now() + this.#patienceMs;
    while (!claim()) {
      if (Date.now() > deadline) throw new Error(`${what}: not within ${this.#patienceMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /**
   * Watches something that must stay true. That can only be done for a while: long enough for another round trip or
   * twenty.
   */
  async staysTrue(claim: () => boolean): Promise<void> {
    const end = Date.now() + this.#watchMs;
    while (Date.now() < end) {
      expect(claim()).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}
