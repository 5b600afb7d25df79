/** Connections of a client to a session-bound channel: the page's WebSocket and the terminal's line-based socket. */
import { createConnection } from 'node:net';
import { WebSocket } from 'ws';
import { createLineSplitter } from '#channel-kit/line-splitter.ts';
import type { FrameTransport } from './frame-client.ts';

/** `cookie`: that of a signed-in browser. */
export function openWebSocket(url: string, cookie: string): Promise<FrameTransport> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/channels/web/chat`, {
    headers: { cookie, origin: url },
  });
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.once('open', () =>
      resolve({
        send: (text) => socket.send(text),
        close: () => socket.close(),
        onFrame: (listener) => void socket.on('message', (data) => listener(data.toString())),
        onClose: (listener) => void socket.once('close', listener),
      }),
    );
  });
}

export function openLineSocket(path: string): Promise<FrameTransport> {
  const socket = createConnection(path);
  const lines = createLineSplitter();
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.once('connect', () =>
      resolve({
        send: (text) => void socket.write(`${text}\n`),
        close: () => void socket.destroy(),
        onFrame: (listener) =>
          void socket.on('data', (chunk: Buffer) => {
            for (const line of lines.push(chunk)) listener(line);
          }),
        onClose: (listener) => void socket.once('close', listener),
      }),
    );
  });
}
