/** Server-sent events to one reader, who may be slow: what is to be written waits for them, and never piles up. */
import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

export interface EventStream {
  /** Writes an event; resolves once the reader has room for the next. Returns false when they are gone. */
  send(event: object, name?: string): Promise<boolean>;
  /** Writes text that isn't JSON, and ends the stream. */
  end(data?: string): void;
}

/** How often a silent stream says that it lives, so that no proxy cuts it, ms. */
const beatMs = 15_000;
/** How long a reader may take nothing, ms. */
const stallMs = 120_000;

/** Begins the stream. `signal` aborts when the reader is gone. */
export function openEventStream(reply: FastifyReply, signal: AbortSignal): EventStream {
  const { raw } = reply;
  reply.hijack();
  const headers = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' };
  raw.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...headers });
  const beat = setInterval(() => !raw.writableNeedDrain && raw.write(': \n\n'), beatMs).unref();
  raw.once('close', () => clearInterval(beat));
  const room = async () => {
    const stalled = AbortSignal.timeout(stallMs);
    try {
      await once(raw, 'drain', { signal: AbortSignal.any([signal, stalled]) });
    } catch {
      // They are gone, or as good as gone; the run continues.
      raw.destroy();
    }
  };
  return {
    send: async (event, name) => {
      if (signal.aborted || raw.destroyed) return false;
      const head = name === undefined ? '' : `event: ${name}\n`;
      if (!raw.write(`${head}data: ${JSON.stringify(event)}\n\n`)) await room();
      return !raw.destroyed;
    },
    end: (data) => {
      clearInterval(beat);
      raw.end(data === undefined ? undefined : `data: ${data}\n\n`);
    },
  };
}

/**
 * Divides a text that grows, and begins again with each message of the model, into pieces that are only ever appended:
 * a further message begins after an empty line.
 */
export class Deltas {
  #sent = '';
  #isDivided = false;

  /** Returns what to append, given the present message so far; empty if there is nothing yet. */
  take(text: string): string {
    // Half of a character waits for the other half.
    const whole = /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text;
    if (whole.startsWith(this.#sent) && !this.#isDivided) {
      const more = whole.slice(this.#sent.length);
      this.#sent = whole;
      return more;
    }
    this.#isDivided ||= this.#sent !== '';
    if (whole === '') return '';
    this.#sent = whole;
    this.#isDivided = false;
    return `\n\n${whole}`;
  }

  /** Returns what is still missing of the complete answer. */
  finish(text: string): string {
    return this.#sent.trimEnd() === text.trimEnd() && !this.#isDivided ? '' : this.take(text);
  }
}
