import { systemClock } from '#channel-kit/system-clock.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { TimelineReader } from '#contracts/timeline.ts';
import { webChannel } from '../../../channels/web/ids.ts';
import { channel } from '../../../channels/web/index.ts';
import { aServer } from '../../server/a-server.ts';
import { silentLog } from '../../support/silent-log.ts';
import { FrameClient } from '../frame-client.ts';
import { openWebSocket } from '../frame-transports.ts';

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
        { log: silentLog, clock: systemClock, fetch, dataDir: '/nonexistent', routes, timeline },
      ),
    newClient: () => {
      const client = new FrameClient(() => openWebSocket(running.url, cookie));
      clients.push(client);
      return client;
    },
    close: async () => {
      for (const client of clients) client.close();
      await running.server.close();
    },
  };
}
