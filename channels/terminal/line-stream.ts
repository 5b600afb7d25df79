import type { Socket } from 'node:net';
import { createBoundedSend } from '#channel-kit/bounded-send.ts';
import type { ClientLink } from '#channel-kit/client-connection.ts';
import { maxFrameBytes } from '#channel-kit/client-frames.ts';
import { createLineSplitter } from '#channel-kit/line-splitter.ts';

const closeGraceMs = 300;
/** Clients write each line in one go; a line still unfinished after this time, ms, was never meant to end. */
const defaultLineMs = 15_000;

/**
 * Wraps one client's stream; each text is a line. Closing waits until everything sent has left, at most 300 ms.
 * `lineMs`: how long a line may take from its first byte to its end, ms.
 */
export function createLineStream(socket: Socket, lineMs = defaultLineMs): ClientLink {
  const splitter = createLineSplitter();
  let tooLate: NodeJS.Timeout | undefined;
  const stopTiming = () => {
    clearTimeout(tooLate);
    tooLate = undefined;
  };
  /** Times the line that has begun; a line isn't late while reading is paused. */
  const timeLine = () => {
    if (splitter.begunBytes() === 0 || socket.isPaused()) stopTiming();
    else tooLate ??= setTimeout(() => socket.destroy(), lineMs).unref();
  };
  const onChunk = (chunk: Buffer, listener: (line: string) => void) => {
    const lines = splitter.push(chunk);
    if (lines.length > 0) stopTiming();
    for (const line of lines) if (line.length > 0) listener(line);
    // A line that is too long ends the stream, just like one that is too slow.
    if (splitter.begunBytes() > maxFrameBytes) socket.destroy();
    timeLine();
  };
  socket.once('close', stopTiming);
  // `close` reports a client that is gone; its error adds nothing.
  socket.on('error', () => socket.destroy());
  const send = createBoundedSend({
    waiting: () => socket.writableLength,
    write: (line) => void socket.write(`${line}\n`),
  });
  return {
    send: (line) => {
      if (!socket.destroyed && !socket.writableEnded && !send(line)) socket.destroy();
    },
    close: () => {
      socket.end();
      // A stream may be closed repeatedly: listeners that clear the timer would pile up on its socket.
      setTimeout(() => socket.destroy(), closeGraceMs).unref();
    },
    onText: (listener) => void socket.on('data', (chunk: Buffer) => onChunk(chunk, listener)),
    setPaused: (isPaused) => {
      if (!isPaused) socket.resume();
      else socket.pause();
      timeLine();
    },
    onClose: (listener) => void socket.once('close', listener),
  };
}
