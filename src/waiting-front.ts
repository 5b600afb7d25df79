/**
 * The door of a gateway that can't start yet: it says why, shows what can be read, and answers 503 to all
 * that would have to be written. No channel is connected, so no cursor moves and nothing is lost.
 */
import { randomBytes } from 'node:crypto';
import type { Intake } from '#contracts/channel.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { GatewayOptions } from './base.ts';
import { configuredAccounts } from './channel-host/configured-accounts.ts';
import { createTimelines } from './channel-host/timeline.ts';
import { revealSettings } from './config/secret.ts';
import { laneKeyOf } from './front.ts';
import { createGate } from './inbound/gate.ts';
import { createLoopWatch } from './logging/loop-watch.ts';
import { configuredModel } from './models/configured-model.ts';
import type { Obstacle } from './obstacle.ts';
import { createClosers } from './processes/closers.ts';
import { noLiveEvents } from './queue/live-events.ts';
import { noticesFor } from './replies/notices.ts';
import { keptToken } from './server/access-token.ts';
import { removeAddress, writeAddress } from './server/address-file.ts';
import type { StatusProblem } from './server/gateway-status.ts';
import { createHealthServer } from './server/health-server.ts';
import { createHttpServer, type HttpServer } from './server/http-server.ts';
import { createMetrics } from './server/metrics/metrics.ts';
import { readinessOf } from './server/readiness.ts';
import type { Store } from './store/command.ts';
import { absentStore, readableStore, releasable } from './store/readable-store.ts';

export type WaitingFront = {
  readonly url: string;
  /**
   * Closes the database: SQLite shares among all connections of a process what it opened for reading
   * alone, and a writer could then not write.
   */
  letGo(): Promise<void>;
  /** Gives up the address. Safe to call twice. */
  close(): Promise<void>;
};

type Waiting = Required<Pick<GatewayOptions, 'clock'>> &
  GatewayOptions & {
    /** What stands in the way now. */
    readonly obstacle: () => Obstacle;
  };

export async function openWaitingFront(options: Waiting): Promise<WaitingFront> {
  const { config, log, clock, version } = options;
  const closers = createClosers(log);
  const away = new ParleyError('store_unavailable', 'Parley has not started yet.', {
    retry: { kind: 'later' },
  });
  const readable = config.databaseUrl === undefined ? readableStore(config.dataDir, away) : undefined;
  const store = releasable(readable ?? absentStore(away), away);
  closers.add('store', store.close);
  const { name, isDemo } = configuredModel(config.model, clock);
  const startedAt = clock.now();
  const loop = createLoopWatch({ log });
  closers.add('loop watch', async () => loop.stop());
  loop.start();
  const server = createHttpServer({
    ...{ host: config.host, port: config.port, allowedHosts: config.allowedHosts },
    ...{ trustedProxies: config.trustedProxies, token: await tokenFor(options), store, clock, log },
    readiness: readinessFrom(options),
    status: async () => ({
      ...{ version, startedAt, model: { name, isDemo } },
      channels: configuredAccounts(options.channels, config).map(({ line, state }) => ({
        id: line,
        state: 'off' as const,
        detail: state.kind === 'off' ? state.reason : 'Parley is waiting to start',
      })),
      problems: [problemOf(options.obstacle())],
    }),
    metrics: createMetrics({ store, clock, loop, desk: idleDesk, isRedisReady: () => false }).metrics,
    notices: { shown: async () => [], dismiss: () => Promise.reject(away) },
    absentWebhookStatus: 503,
  });
  closers.add('http server', server.close);
  const { url } = await server.listen();
  await openPages(options, { server, store, away, addCloser: closers.add });
  // So that the command line finds it; on a full disk it finds the configured address.
  await writeAddress(config.dataDir, url).catch(() => undefined);
  closers.add('page address', () => removeAddress(config.dataDir));
  return { url, letGo: store.release, close: closers.close };
}

/** Nothing is parsed before the start. */
const idleDesk = { counts: () => ({ parsed: 0, givenUp: 0 }) };

/** The door of a worker that waits: what it lacks, and nothing else. */
export async function openWaitingHealth(options: Waiting): Promise<WaitingFront> {
  const { config, log, clock } = options;
  const server = createHealthServer({
    ...{ port: config.health.port, log, clock, readiness: readinessFrom(options) },
    metrics: async () => 'parley_store_up 0\n',
    token: () => tokenFor(options),
  });
  const { url } = await server.listen();
  return { url, letGo: async () => undefined, close: server.close };
}

function readinessFrom({ obstacle }: Pick<Waiting, 'obstacle'>) {
  return async () => readinessOf({ needed: [obstacle().id], problems: [problemOf(obstacle())] }, []);
}

function problemOf(obstacle: Obstacle): StatusProblem {
  return { id: obstacle.id, text: wordsFor(obstacle) };
}

/** What its owner reads of a gateway that waits. */
export function wordsFor({ reason }: Obstacle): string {
  return `Parley can't start yet: ${reason} It keeps trying, and messages wait at their networks.`;
}

/** Before the first start has made one, a token that nobody knows: it opens nothing. */
async function tokenFor({ config, onSecret }: GatewayOptions): Promise<string> {
  const token =
    config.token?.reveal() ??
    (await keptToken(config.dataDir).catch(() => undefined)) ??
    randomBytes(32).toString('base64url');
  onSecret?.(token);
  return token;
}

type PageParts = {
  readonly server: HttpServer;
  readonly store: Store;
  readonly away: ParleyError;
  readonly addCloser: (name: string, close: () => Promise<void>) => void;
};

/** Shows the conversations of this machine's channels; whatever is written there is not taken. */
async function openPages(options: Waiting, { server, store, away, addCloser }: PageParts): Promise<void> {
  const { config, log, clock } = options;
  const gate = createGate(config, noticesFor(config.language, config.texts));
  const timelines = createTimelines({ store, log, live: noLiveEvents });
  const refusing: Intake = {
    cursor: undefined,
    anchors: new Map(),
    accept: () => Promise.reject(away),
    trouble: () => undefined,
    gap: () => undefined,
  };
  for (const { entry, line, state } of configuredAccounts(options.channels, config)) {
    const { localPeer } = entry;
    if (localPeer === undefined || state.kind === 'off') continue;
    try {
      const definition = await entry.load();
      const adapter = definition.create(definition.configSchema.parse(revealSettings(state.settings)), {
        ...{ log, clock, fetch, dataDir: `${config.dataDir}/channels/${line}` },
        routes: server.routesFor(line),
        timeline: timelines.readerFor((route) => laneKeyOf(gate, route, localPeer)),
      });
      await adapter.start(refusing);
      addCloser(line, () => adapter.stop());
    } catch (error) {
      log.debug({ error, channel: line }, 'waiting.channel-left-out');
    }
  }
}
