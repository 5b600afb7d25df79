/**
 * The client's end of the gateway's socket: connects, connects again when it ends, asks for what was
 * missed, and then sends every line until it is acknowledged. The same id makes sending twice harmless.
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

export type ChatLink = {
  /** Kept until acknowledged, over any number of connections. */
  submit(frame: EffectFrame): void;
  /** Asks for what came after the newest known position. */
  sync(): void;
  /** True for the frame after all that was stored before the last `sync`. */
  isSynced(frame: ServerFrame): boolean;
  close(): void;
};

export type ChatLinkOptions = {
  readonly socketPath: string;
  readonly conversation: string;
  readonly clock: Clock;
  /** The position after which it has to read, and the session that it counts in. */
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
  /** True once the past of the conversation has been read: nothing of this client's own is in there. */
  let isCaughtUp = false;

  const write = (frame: ClientFrame) => void socket?.write(`${JSON.stringify(frame)}\n`);
  const sync = () => {
    const { after, of } = options.resumeFrom();
    hellos += 1;
    write({ type: 'hello', conversation: options.conversation, ...(after > 0 ? { after, of } : {}) });
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

/** Resolves when the connection ended, with whether there was one that could be read. */
function connectOnce(path: string, events: LinkEvents, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    let wasGood = false;
    const socket = createConnection({ path });
    const lines = createLineSplitter();
    const abort = () => socket.destroy();
    signal.addEventListener('abort', abort, { once: true });
    // It only says that there is no connection, which `close` says as well.
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

/** Undefined for what is no frame of this version. */
function readFrame(line: string): ServerFrame | undefined {
  try {
    return serverFrameSchema.parse(parseJson(line));
  } catch {
    // The caller connects again and reads the timeline anew: nothing is lost with it.
    return undefined;
  }
}

/** Where a path is too long for the system, the gateway leaves a file beside it that names the real one. */
async function resolveSocket(path: string): Promise<string> {
  try {
    return (await readFile(`${path}${socketPointerSuffix}`, 'utf8')).trim();
  } catch {
    // No pointer: the socket is where it should be.
    return path;
  }
}
