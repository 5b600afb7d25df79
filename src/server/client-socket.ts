import type { WebSocket } from 'ws';
import { createBoundedSend } from '#channel-kit/bounded-send.ts';
import type { ClientSocket } from '#contracts/route-host.ts';

const heartbeatMs = 30_000;
const closeGraceMs = 300;

/** Wraps one open WebSocket: text only, with a bounded buffer, and closed when the other side is gone. */
export function createClientSocket(socket: WebSocket): ClientSocket {
  watchHeartbeat(socket);
  const send = createBoundedSend({
    waiting: () => socket.bufferedAmount,
    write: (text) => socket.send(text),
  });
  return {
    send: (text) => {
      if (socket.readyState === socket.OPEN && !send(text)) closeSocket(socket, 1013, 'too slow');
    },
    close: (code, reason) => closeSocket(socket, code, reason),
    onMessage: (listener) => {
      socket.on('message', (data, isBinary) => {
        if (isBinary) return closeSocket(socket, 1003, 'text only');
        listener(data.toString());
      });
    },
    setPaused: (isPaused) => (isPaused ? socket.pause() : socket.resume()),
    onClose: (listener) => void socket.once('close', listener),
  };
}

/** Closes the socket gracefully, or by force if the other side doesn't answer within 300 ms. */
export function closeSocket(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason);
  // A client may cause many closes of one socket, on which listeners that clear the timer would pile up.
  setTimeout(() => socket.terminate(), closeGraceMs).unref();
}

function watchHeartbeat(socket: WebSocket): void {
  let isAlive = true;
  socket.on('pong', () => {
    isAlive = true;
  });
  const timer = setInterval(() => {
    if (!isAlive) return socket.terminate();
    isAlive = false;
    socket.ping();
  }, heartbeatMs);
  timer.unref();
  socket.once('close', () => clearInterval(timer));
}
