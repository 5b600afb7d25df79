import { WebSocket } from 'ws';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { TimelineReader } from '#contracts/timeline.ts';
import { webChannel } from '../../../channels/web/ids.ts';
import { channel } from '../../../channels/web/index.ts';
import { aServer } from '../../server/a-server.ts';
import { quietLog } from '../../support/session-double.ts';
import { FrameClient, type FrameTransport } from '../frame-client.ts';

/** The real server with the channel's routes, and a signed-in page. */
export async function aWebHost(timeline: TimelineReader) {
  const running = await aServer();
  const routes = running.server.routesFor(webChannel);
  const cookie = await running.signIn();
  const clients: FrameClient[] = [];
  return {
    newAdapter: (): ChannelAdapter =>
      channel.create(
        {},
        { log: quietLog, clock: systemClock, fetch, dataDir: '/nonexistent', routes, timeline },
      ),
    newClient: () => {
      const client = new FrameClient(() => connect(running.url, cookie));
      clients.push(client);
      return client;
    },
    close: async () => {
      for (const client of clients) client.close();
      await running.server.close();
    },
  };
}

function connect(url: string, cookie: string): Promise<FrameTransport> {
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
