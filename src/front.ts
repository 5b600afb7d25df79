/** What a process with a door has, and how one without is asked: the page, what the owner is told, and the channels' connections. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { peerId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Base } from './base.ts';
import type { ChannelHost } from './channel-host/channel-host.ts';
import { type ConfiguredAccount, configuredAccounts } from './channel-host/configured-accounts.ts';
import { createOwnerWatch, type OwnerWatch } from './channel-host/owner-watch.ts';
import { revealSettings } from './config/secret.ts';
import { secretsOf } from './config/secrets-of.ts';
import { type FreeSpace, watchFreeSpace } from './inbound/free-space.ts';
import type { Gate } from './inbound/gate.ts';
import { createRedactor } from './logging/redaction.ts';
import { accessToken } from './server/access-token.ts';
import { removeAddress, writeAddress } from './server/address-file.ts';
import { gatewayHealth } from './server/gateway-health.ts';
import { createHealthServer } from './server/health-server.ts';
import { createHttpServer, type HttpServer } from './server/http-server.ts';
import { sessionKeyOf } from './sessions/session-key-of.ts';
import { noEffects } from './store/intake/proposal.ts';

export type Front = { readonly space: FreeSpace; readonly owner: OwnerWatch };

/** What only a process with a door needs. */
export function joinFront(base: Base): Front {
  const { config, clock, log, closers } = base;
  const space = watchFreeSpace({ folder: config.dataDir, clock, log });
  closers.add('disk watch', space.stop);
  return { space, owner: joinOwner(base) };
}

/** What goes wrong is told to the owner: by a message that goes the way of all messages, and on the page. */
function joinOwner(base: Base): OwnerWatch {
  const { config, channels, closers, motion } = base;
  const owner = createOwnerWatch({
    ...base,
    owners: config.owners,
    localChannels: channels.flatMap(({ id, localPeer }) => (localPeer === undefined ? [] : [id])),
    deliver: (conversationKey) => motion.start({ ...noEffects(), deliveries: [conversationKey] }),
  });
  closers.add('owner notices', owner.stop);
  return owner;
}

export async function openServer(
  base: Base,
  { host, space, owner }: { host: ChannelHost; space: FreeSpace; owner: OwnerWatch },
): Promise<HttpServer> {
  const { config, redis, closers } = base;
  const token = await tokenOf(base);
  const server = createHttpServer({
    ...base,
    ...gatewayHealth({
      ...base,
      channels: host.states,
      isRedisReady: redis.connections.isReady,
      hasSpace: space.isEnough,
      redact: redactorOf(base),
    }),
    host: config.host,
    port: config.port,
    token,
    allowedHosts: config.allowedHosts,
    trustedProxies: config.trustedProxies,
    notices: owner,
  });
  closers.add('http server', server.close);
  const listen = async () => {
    await base.beforeListen?.();
    const { url } = await server.listen();
    await writeAddress(config.dataDir, url);
    await base.publishAddress(url);
    closers.add('page address', () => removeAddress(config.dataDir));
    return { url };
  };
  return { ...server, listen };
}

/** How a process without a page is, on a loopback port of its own. */
export async function openHealth(base: Base, host: ChannelHost): Promise<{ readonly url: string }> {
  const { config, redis, closers } = base;
  const server = createHealthServer({
    ...base,
    ...gatewayHealth({
      ...base,
      channels: host.states,
      isRedisReady: redis.connections.isReady,
      redact: redactorOf(base),
    }),
    port: config.health.port,
    token: () => tokenOf(base),
  });
  closers.add('health server', server.close);
  await base.beforeListen?.();
  const { url } = await server.listen();
  await base.publishAddress(url);
  return { url };
}

async function tokenOf({ config, onSecret }: Base): Promise<string> {
  const token = config.token?.reveal() ?? (await accessToken(config.dataDir));
  onSecret?.(token);
  return token;
}

function redactorOf({ config }: Base): (text: string) => string {
  return createRedactor(secretsOf(config)).redact;
}

type ChannelParts = {
  readonly host: ChannelHost;
  readonly gate: Gate;
  readonly server: HttpServer | undefined;
};

export async function openChannels(base: Base, { host, gate, server }: ChannelParts): Promise<void> {
  const { config, timelines } = base;
  const open = async ({ entry, line, accountName, state }: ConfiguredAccount): Promise<void> => {
    const { id, load, localPeer } = entry;
    if (state.kind === 'off') return host.setOff(line, state.reason);
    const dataDir = join(config.dataDir, 'channels', line);
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const timeline =
      localPeer === undefined
        ? {}
        : { timeline: timelines.readerFor((route) => laneKeyOf(gate, route, localPeer)) };
    const deps = { dataDir, ...(server && { routes: server.routesFor(line) }), ...timeline };
    const named = accountName === undefined ? {} : { accountName };
    await host.run({ id, ...named, load, settings: revealSettings(state.settings), deps });
  };
  await Promise.all(configuredAccounts(base.channels, config).map(open));
}

/** The session of the person who sits at a channel of this machine. */
export function laneKeyOf(gate: Gate, route: ReplyRoute, peer: string): string {
  const event = { route, chat: { kind: 'dm' }, sender: { id: peerId(peer) } } as const;
  const { defaultAgent: agent, dmScope, identityLinks } = gate;
  return sessionKeyOf(event, { agent, dmScope, identityLinks });
}
