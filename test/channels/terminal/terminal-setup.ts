import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { TimelineReader } from '#contracts/timeline.ts';
import { channel } from '../../../channels/terminal/index.ts';
import { quietLog } from '../../support/session-double.ts';
import { FrameClient, type FrameTransport } from '../frame-client.ts';

/** A data folder of the channel's own, and a client of its socket. */
export async function aTerminalHost(timeline: TimelineReader) {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-'));
  const socketPath = join(dataDir, 'terminal.sock');
  const clients: FrameClient[] = [];
  return {
    dataDir,
    socketPath,
    newAdapter: (): ChannelAdapter =>
      channel.create({}, { log: quietLog, clock: systemClock, fetch, dataDir, timeline }),
    newClient: (path = socketPath) => {
      const client = new FrameClient(() => connect(path));
      clients.push(client);
      return client;
    },
    close: async () => {
      for (const client of clients) client.close();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

export function readPointer(dataDir: string): Promise<string> {
  return readFile(join(dataDir, 'terminal.sock.path'), 'utf8');
}

function connect(path: string): Promise<FrameTransport> {
  const socket = createConnection(path);
  const lines = createInterface({ input: socket });
  // readline passes the stream's errors on; the stream's own listener below reports them.
  lines.on('error', () => undefined);
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.once('connect', () =>
      resolve({
        send: (text) => void socket.write(`${text}\n`),
        close: () => void socket.destroy(),
        onFrame: (listener) => void lines.on('line', listener),
        onClose: (listener) => void socket.once('close', listener),
      }),
    );
  });
}
