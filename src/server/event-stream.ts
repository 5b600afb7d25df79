/** Server-sent events to one reader, who may be slow: what is to be written waits for them, and never piles up. */
import { once } from 'node:events';
import type { FastifyReply } from 'fastify';

/** An open stream of server-sent events. */
export interface EventStream {
  /** Writes an event; resolves once the reader has room for the next. Returns false when they are gone. */
  send(event: object, name?: string): Promise<boolean>;
  /** Does the same with events as they are sent. */
  write(events: string): Promise<boolean>;
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
  const write = async (events: string) => {
    if (signal.aborted || raw.destroyed) return false;
    if (!raw.write(events)) await room();
    return !raw.destroyed;
  };
  return {
    write,
    send: (event, name) => {
      const head = name === undefined ? '' : `event: ${name}\n`;
      return write(`${head}data: ${JSON.stringify(event)}\n\n`);
    },
    end: (data) => {
      clearInterval(beat);
      raw.end(data === undefined ? undefined : `data: ${data}\n\n`);
    },
  };
}
