import type { Socket } from 'node:net';
import type { ClientLink } from '#channel-kit/client-connection.ts';
import { maxFrameBytes } from '#channel-kit/client-frames.ts';

/** Bytes that may wait for a client that does not read; past it the client is cut off. */
const maxBufferedBytes = 8 * 1024 * 1024;
const closeGraceMs = 300;
/** A client writes a line at once; one that is begun and not ended by then was never meant to be. */
const defaultLineMs = 15_000;
const newline = 0x0a;

/**
 * Wraps one client's stream: each text is a line. It closes once what was sent has left, by force after 300 ms.
 * `lineMs`: how long a line may take from its first byte to its end, ms.
 */
export function createLineStream(socket: Socket, lineMs = defaultLineMs): ClientLink {
  // A client that is gone is told by `close`; its error says nothing more.
  socket.on('error', () => socket.destroy());
  return {
    send: (line) => {
      if (socket.destroyed || socket.writableEnded) return;
      socket.write(`${line}\n`);
      if (socket.writableLength > maxBufferedBytes) socket.destroy();
    },
    close: () => {
      socket.end();
      // A stream may be closed again and again: a listener that ends the timer would pile up on its socket.
      setTimeout(() => socket.destroy(), closeGraceMs).unref();
    },
    onText: (listener) => readLines(socket, { listener, lineMs }),
    onClose: (listener) => void socket.once('close', listener),
  };
}

type Reading = { readonly listener: (line: string) => void; readonly lineMs: number };

/** Splits at line ends before decoding, so that no character is cut; a line too long or too slow ends the stream. */
function readLines(socket: Socket, { listener, lineMs }: Reading): void {
  let rest: Buffer[] = [];
  let restBytes = 0;
  let tooLate: NodeJS.Timeout | undefined;
  const watchLine = () => {
    if (restBytes === 0) {
      clearTimeout(tooLate);
      tooLate = undefined;
    } else tooLate ??= setTimeout(() => socket.destroy(), lineMs).unref();
  };
  socket.once('close', () => clearTimeout(tooLate));
  socket.on('data', (chunk: Buffer) => {
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      const line = Buffer.concat([...rest, chunk.subarray(from, end)]).toString();
      rest = [];
      restBytes = 0;
      watchLine();
      from = end + 1;
      if (line.length > 0) listener(line);
    }
    restBytes += chunk.length - from;
    rest.push(chunk.subarray(from));
    if (restBytes > maxFrameBytes) socket.destroy();
    else watchLine();
  });
}
