/**
 * A client of a session-bound channel, like the page and the terminal: it keeps what wasn't acknowledged, reconnects on
 * its own, and shows each message once.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { type EffectFrame, type ServerFrame, serverFrameSchema } from '#channel-kit/client-frames.ts';
import type { SentFile, TimelineItem } from '#contracts/timeline.ts';
import type { Span } from '../../src/contracts/formatted-text.ts';
import { patienceMs } from '../support/patience.ts';

export type FrameTransport = {
  send(text: string): void;
  close(): void;
  onFrame(listener: (text: string) => void): void;
  onClose(listener: () => void): void;
};

type ShownMessage = {
  readonly text: string;
  readonly spans: readonly Span[];
  readonly file?: SentFile;
};

const retryMs = 20;

export class FrameClient {
  readonly #connect: () => Promise<FrameTransport>;
  readonly #unacknowledged = new Map<string, EffectFrame>();
  readonly #shown = new Map<string, ShownMessage>();
  readonly frames: ServerFrame[] = [];
  #transport: FrameTransport | undefined;
  #last: EffectFrame | undefined;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(connect: () => Promise<FrameTransport>) {
    this.#connect = connect;
    void this.#open();
  }

  get unacknowledged(): readonly EffectFrame[] {
    return [...this.#unacknowledged.values()];
  }

  get standing(): readonly (ShownMessage & { readonly messageId: string })[] {
    return [...this.#shown].map(([messageId, shown]) => ({ messageId, ...shown }));
  }

  /** The newest version of each item, oldest item first. */
  get items(): readonly TimelineItem[] {
    const byId = new Map<string, TimelineItem>();
    for (const frame of this.frames) {
      if (frame.type === 'items') for (const item of frame.items) byId.set(item.messageId, item);
    }
    return [...byId.values()].sort((a, b) => a.position - b.position);
  }

  say(text: string): string {
    return this.submit({ type: 'send', id: randomUUID(), text });
  }

  submit(frame: EffectFrame): string {
    this.#unacknowledged.set(frame.id, frame);
    this.#last = frame;
    this.#transport?.send(JSON.stringify(frame));
    return frame.id;
  }

  repeatLast(): void {
    this.#transport?.send(JSON.stringify(this.#last));
  }

  sendRaw(text: string): void {
    this.#transport?.send(text);
  }

  /** Resolves once everything sent to this client has arrived: the answer to this frame comes after it. */
  async synced(): Promise<void> {
    const id = randomUUID();
    const question = JSON.stringify({ type: 'nothing', id });
    const isAnswered = () => this.frames.some((frame) => frame.type === 'problem' && frame.id === id);
    await expect.poll(() => this.#transport !== undefined, { timeout: patienceMs }).toBe(true);
    this.sendRaw(question);
    await expect.poll(isAnswered, { timeout: patienceMs }).toBe(true);
  }

  /** Ends the connection; the client reconnects on its own. */
  cut(): void {
    this.#transport?.close();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#transport?.close();
  }

  async #open(): Promise<void> {
    try {
      const transport = await this.#connect();
      if (this.#isClosed) return transport.close();
      transport.onFrame((text) => this.#receive(serverFrameSchema.parse(JSON.parse(text))));
      transport.onClose(() => this.#again());
      this.#transport = transport;
      transport.send('{"type":"hello","conversation":"main"}');
      for (const frame of this.#unacknowledged.values()) transport.send(JSON.stringify(frame));
    } catch {
      // Nothing listens yet; a later attempt may succeed.
      this.#again();
    }
  }

  #again(): void {
    this.#transport = undefined;
    if (!this.#isClosed) this.#timer = setTimeout(() => void this.#open(), retryMs);
  }

  #receive(frame: ServerFrame): void {
    this.frames.push(frame);
    if (frame.type === 'ack') this.#unacknowledged.delete(frame.id);
    if (frame.type === 'message' || frame.type === 'edited') {
      const file = frame.type === 'message' ? frame.file : undefined;
      this.#shown.set(frame.messageId, { text: frame.text, spans: frame.spans, ...(file && { file }) });
    }
    if (frame.type === 'deleted') this.#shown.delete(frame.messageId);
  }
}
