import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { TimelineReader } from '#contracts/timeline.ts';
import { channel } from '../../../channels/terminal/index.ts';
import { silentLog } from '../../support/silent-log.ts';
import { FrameClient } from '../frame-client.ts';
import { openLineSocket } from '../frame-transports.ts';

/** Returns a data folder for the channel, with adapters and clients that use its socket. */
export async function aTerminalHost(timeline: TimelineReader) {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-test-'));
  const socketPath = join(dataDir, 'terminal.sock');
  const clients: FrameClient[] = [];
  return {
    dataDir,
    socketPath,
    newAdapter: (): ChannelAdapter =>
      channel.create({}, { log: silentLog, clock: systemClock, fetch, dataDir, timeline }),
    newClient: (path = socketPath) => {
      const client = new FrameClient(() => openLineSocket(path));
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
