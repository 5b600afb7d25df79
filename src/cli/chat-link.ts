/**
 * The client's end of the gateway's socket: connects, reconnects when the connection ends, asks for what it
 * missed, and then sends every line until it is acknowledged. Reusing the id makes sending twice harmless.
 */

import { readFile } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import {
  type ClientFrame,
  type EffectFrame,
  type ServerFrame,
  serverFrameSchema,
  socketPointerSuffix,
} from '#channel-kit/client-frames.ts';
import { createLineSplitter } from '#channel-kit/line-splitter.ts';
import { parseJson } from '#channel-kit/parse-json.ts';
import type { Clock } from '#contracts/clock.ts';
import { knownEvents } from '../client/conversation.js';

export type ChatLink = {
  /** Keeps the frame until it is acknowledged, across any number of connections. */
  submit(frame: EffectFrame): void;
  /** Asks for everything after the newest known position. */
  sync(): void;
  /** Returns true for the frame that follows everything stored before the last `sync`. */
  isSynced(frame: ServerFrame): boolean;
  close(): void;
};

export type ChatLinkOptions = {
  readonly socketPath: string;
  readonly conversation: string;
  readonly clock: Clock;
  /** The position after which to read, and the session in which it counts. */
  readonly resumeFrom: () => { readonly after: number; readonly of: string | undefined };
  readonly onFrame: (frame: ServerFrame) => void;
  readonly onState: (state: 'open' | 'lost') => void;
};

const firstDelayMs = 200;
const maxDelayMs = 3000;

export function createChatLink(options: ChatLinkOptions): ChatLink {
  const ended = new AbortController();
  const kept = new Map<string, EffectFrame>();
  let socket: Socket | undefined;
  let hellos = 0;
  /** True once the conversation's history has been read: it contains nothing that this client sent. */
  let isCaughtUp = false;

  const write = (frame: ClientFrame) => void socket?.write(`${JSON.stringify(frame)}\n`);
  const sync = () => {
    const { after, of } = options.resumeFrom();
    hellos += 1;
    write({
      ...{ type: 'hello', conversation: options.conversation, events: [...knownEvents] },
      ...(after > 0 ? { after, of } : {}),
    });
  };
  const receive = (frame: ServerFrame) => {
    if (frame.type === 'ack' || (frame.type === 'problem' && !frame.retry)) kept.delete(frame.id ?? '');
    options.onFrame(frame);
    if (frame.type !== 'items' || isCaughtUp) return;
    isCaughtUp = true;
    for (const own of kept.values()) write(own);
  };
  const onOpen = (opened: Socket) => {
    socket = opened;
    hellos = 0;
    sync();
    options.onState('open');
  };
  const onLost = () => {
    socket = undefined;
    isCaughtUp = false;
    if (!ended.signal.aborted) options.onState('lost');
  };

  void keepConnected(options, { onOpen, onFrame: receive, onLost }, ended.signal);
  return {
    submit: (frame) => {
      kept.set(frame.id, frame);
      if (isCaughtUp) write(frame);
    },
    sync,
    isSynced: (frame) => frame.type === 'standing' && frame.hellos === hellos,
    close: () => {
      ended.abort();
      socket?.destroy();
    },
  };
}

type LinkEvents = {
  readonly onOpen: (socket: Socket) => void;
  readonly onFrame: (frame: ServerFrame) => void;
  readonly onLost: () => void;
};

async function keepConnected(
  options: ChatLinkOptions,
  events: LinkEvents,
  signal: AbortSignal,
): Promise<void> {
  let delayMs = firstDelayMs;
  while (!signal.aborted) {
    const wasGood = await connectOnce(await resolveSocket(options.socketPath), events, signal);
    delayMs = wasGood ? firstDelayMs : Math.min(delayMs * 2, maxDelayMs);
    if (!signal.aborted) await options.clock.wait(delayMs, signal);
  }
}

/** Resolves when the connection has ended; true if there was one and its frames were readable. */
function connectOnce(path: string, events: LinkEvents, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    let wasGood = false;
    const socket = createConnection({ path });
    const lines = createLineSplitter();
    const abort = () => socket.destroy();
    signal.addEventListener('abort', abort, { once: true });
    // An error only means that there is no connection, which `close` reports too.
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      for (const line of lines.push(chunk)) {
        if (socket.destroyed) return;
        const frame = readFrame(line);
        if (frame !== undefined) events.onFrame(frame);
        else {
          wasGood = false;
          socket.destroy();
        }
      }
    });
    socket.once('connect', () => {
      wasGood = true;
      events.onOpen(socket);
    });
    socket.once('close', () => {
      signal.removeEventListener('abort', abort);
      events.onLost();
      resolve(wasGood);
    });
  });
}

/** Returns undefined for anything that isn't a frame of this version. */
function readFrame(line: string): ServerFrame | undefined {
  try {
    return serverFrameSchema.parse(parseJson(line));
  } catch {
    // The caller reconnects and reads the timeline again, so nothing is lost.
    return undefined;
  }
}

/** When a path is too long for the system, the gateway leaves a file next to it that names the real one. */
async function resolveSocket(path: string): Promise<string> {
  try {
    return (await readFile(`${path}${socketPointerSuffix}`, 'utf8')).trim();
  } catch {
    // No pointer: the socket is where it should be.
    return path;
  }
}
