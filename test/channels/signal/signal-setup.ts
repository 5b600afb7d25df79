import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import { channelId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { RouteHost } from '#contracts/route-host.ts';
import type { SignalAdapter } from '../../../channels/signal/adapter.ts';
import { botOf, routeOf } from '../../../channels/signal/ids.ts';
import { channel } from '../../../channels/signal/index.ts';
import type { Span } from '../../../src/contracts/formatted-text.ts';
import { dataMessage, notification } from '../../platforms/signal/envelopes.ts';
import {
  type SignalServer,
  type SignalServerOptions,
  startSignalServer,
} from '../../platforms/signal/server.ts';
import type { Group, Person, StyleRange, TextStyle } from '../../platforms/signal/types.ts';
import { aServer, send } from '../../server/a-server.ts';
import { silentLog } from '../../support/silent-log.ts';
import { hastyClock } from '../hasty-clock.ts';

export const webhookSecret = 'a-secret-of-22-characters-or-more';

/** Real time, but pauses last half a second at most: long enough for the webhook to be faster than the socket. */
export const patientClock: Clock = {
  now: systemClock.now,
  wait: (ms, signal) => systemClock.wait(Math.min(ms, 500), signal),
};

/** How messages reach Parley. */
export type Way = 'webhook' | 'socket' | 'polling';

/** A Signal server, Parley's own HTTP server for its webhook, and a folder that outlives adapters. */
export type SignalStage = {
  readonly server: SignalServer;
  readonly dataDir: string;
  readonly ada: Person;
  newAdapter(options?: AdapterOptions): SignalAdapter;
  routeTo(where: Person | Group): ReplyRoute;
  /** Calls the webhook with a body; resolves with the status. */
  post(body: string, secret?: string): Promise<number>;
  /** Calls the webhook with a message from Ada that no socket delivers. */
  deliver(text: string, secret?: string): Promise<number>;
  close(): Promise<void>;
};

export type AdapterOptions = {
  readonly clock?: Clock;
  readonly log?: Log;
  readonly config?: Readonly<Record<string, unknown>>;
};

export async function aSignalStage(
  way: Way,
  options: Omit<SignalServerOptions, 'mode' | 'webhookUrl'> = {},
): Promise<SignalStage> {
  // In a poll, signal-cli waits until nothing has come for a second, which is shortened here.
  const polled = { mode: 'native', secondMs: 100 } as const;
  const mode = way === 'polling' ? polled : ({ mode: 'json-rpc' } as const);
  const server = await startSignalServer({ ...mode, ...options });
  const http = way === 'webhook' ? await aServer() : undefined;
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-signal-'));
  const ada = server.world.addPerson({ name: 'Ada', number: null });
  if (http !== undefined) server.webhookUrl = `${http.url}/channels/signal/webhook/${webhookSecret}`;
  const routes = http?.server.routesFor(channelId('signal'));
  const post: SignalStage['post'] = async (body, secret = webhookSecret) => {
    const path = `/channels/signal/webhook${secret === '' ? '' : `/${secret}`}`;
    const headers = { host: `127.0.0.1:${http?.port}`, 'content-type': 'application/json' };
    return (await send({ port: http?.port ?? 0, path, method: 'POST', headers, body })).status;
  };
  return {
    server,
    dataDir,
    ada,
    post,
    deliver: (text, secret) => {
      const at = server.world.nextTimestamp();
      const data = dataMessage({ person: ada }, at, 0, { message: text });
      const params = notification(server.account, { person: ada, device: 1 }, at, { dataMessage: data });
      return post(JSON.stringify({ jsonrpc: '2.0', method: 'receive', params }), secret);
    },
    newAdapter: (adapter = {}) => {
      const clock = way === 'webhook' ? patientClock : hastyClock;
      return newAdapter(server, { clock, ...adapter, dataDir, routes });
    },
    routeTo: (where) => routeTo(server, where),
    close: async () => {
      await server.close();
      await http?.server.close();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function newAdapter(
  server: SignalServer,
  options: AdapterOptions & { readonly dataDir: string; readonly routes: RouteHost | undefined },
): SignalAdapter {
  const { log = silentLog, clock = hastyClock, dataDir, routes, config = {} } = options;
  const settings = channel.configSchema.parse({
    apiUrl: server.url,
    callTimeoutMs: 10_000,
    ...(routes === undefined ? {} : { webhookSecret }),
    ...config,
  });
  // This channel's own definition creates no other kind of adapter.
  return channel.create(settings, {
    log,
    clock,
    fetch,
    dataDir,
    ...(routes === undefined ? {} : { routes }),
  }) as SignalAdapter;
}

export function routeTo(server: SignalServer, where: Person | Group): ReplyRoute {
  const { uuid, number, name } = server.account;
  const bot = botOf({ aci: uuid, number, name });
  return routeOf(bot, 'internalId' in where ? where.internalId : where.uuid);
}

const kinds: Readonly<Record<TextStyle, Span['kind']>> = {
  BOLD: 'bold',
  ITALIC: 'italic',
  SPOILER: 'spoiler',
  STRIKETHROUGH: 'strikethrough',
  MONOSPACE: 'code',
};

/** Converts Signal's styles to the spans of the contract. */
export function spansOf(styles: readonly StyleRange[]): readonly Span[] {
  return styles.map(({ style, start, length }) => ({ kind: kinds[style], start, length }) as Span);
}
