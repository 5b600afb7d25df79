import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChannelDeps } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { accountId, channelId, conversationId, threadId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { DiscordAdapter } from '../../../channels/discord/adapter.ts';
import { channel } from '../../../channels/discord/index.ts';
import { outboundFetch } from '../../../src/http/outbound-fetch.ts';
import {
  type DiscordServer,
  type DiscordServerOptions,
  startDiscordServer,
} from '../../platforms/discord/server.ts';
import { silentLog } from '../../support/silent-log.ts';
import { hastyClock } from '../hasty-clock.ts';

export type AdapterOptions = {
  readonly token?: string;
  readonly clock?: Clock;
  readonly log?: Log;
  readonly callTimeoutMs?: number;
  readonly backfillHours?: number;
};

export type DiscordSetup = {
  readonly server: DiscordServer;
  readonly dataDir: string;
  newAdapter(options?: AdapterOptions): DiscordAdapter;
  route(conversation: string, thread?: string): ReplyRoute;
  close(): Promise<void>;
};

/** Sets up a Discord server and a data folder for one bot, which may be started on it again and again. */
export async function setUpDiscord(options: DiscordServerOptions = {}): Promise<DiscordSetup> {
  const server = await startDiscordServer(options);
  const dataDir = mkdtempSync(join(tmpdir(), 'parley-discord-'));
  return {
    server,
    dataDir,
    newAdapter: (over = {}) => newAdapter(server, dataDir, over),
    route: (conversation, thread) => ({
      channel: channelId('discord'),
      account: accountId(server.bot.id),
      conversation: conversationId(conversation),
      ...(thread === undefined ? {} : { thread: threadId(thread) }),
    }),
    close: async () => {
      await server.close();
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function newAdapter(server: DiscordServer, dataDir: string, options: AdapterOptions): DiscordAdapter {
  const deps: ChannelDeps = {
    log: options.log ?? silentLog,
    clock: options.clock ?? hastyClock,
    dataDir,
    fetch: outboundFetch,
  };
  const config = channel.configSchema.parse({
    token: options.token ?? server.token,
    apiBase: server.apiUrl,
    callTimeoutMs: options.callTimeoutMs ?? 5000,
    ...(options.backfillHours === undefined ? {} : { backfillHours: options.backfillHours }),
  });
  return channel.create(config, deps) as DiscordAdapter;
}
