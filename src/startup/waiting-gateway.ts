/**
 * Serves the page while the gateway can't start: it says why, shows what can be read, and answers every write with 503.
 * No channel is connected, so no cursor moves, and messages that networks keep are read later. Messages that a network
 * sends only once are kept by its channel, if the disk allows it.
 */

import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Intake } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import { configuredAccounts } from '../channel-host/configured-accounts.ts';
import { createTimeline } from '../channel-host/timeline.ts';
import { localDeps } from '../cli/call-operation.ts';
import { mediaFolder } from '../config/media-folder.ts';
import { revealSettings } from '../config/secret.ts';
import { secretsOf } from '../config/secrets-of.ts';
import { createInboundPolicy, localLaneKey } from '../inbound/inbound-policy.ts';
import { createLoopWatch } from '../logging/loop-watch.ts';
import { createRedactor } from '../logging/redaction.ts';
import { configuredModel } from '../models/models.ts';
import type { LaneChanges } from '../operations/lanes.ts';
import type { StatusProblem } from '../operations/status.ts';
import { type Closers, createClosers } from '../processes/closers.ts';
import { publishProcessAddress } from '../processes/process-address.ts';
import { enterProcesses } from '../processes/process-files.ts';
import { createFeed } from '../queue/feed.ts';
import { noLiveEvents } from '../queue/live-events.ts';
import type { GatewayOptions } from '../roles/stage-deps.ts';
import { keptToken } from '../server/access-token.ts';
import { createHealthServer } from '../server/health-server.ts';
import { createHttpServer, type HttpServer } from '../server/http-server.ts';
import { createMetrics } from '../server/metrics/metrics.ts';
import { readinessOf } from '../server/readiness.ts';
import { keyedWrite } from '../steps.ts';
import type { Store } from '../store/base/command.ts';
import { readRestoreMark } from '../store/delivery/restore.ts';
import { absentStore, readableStore, releasable } from '../store/readable-store.ts';
import { agentRoster } from '../subagents/agent-roster.ts';
import { textsFor } from '../texts/chat-texts.ts';
import type { StartBlocker } from './start-blocker.ts';

/** The page or health server of a gateway that waits to start. */
export type WaitingGateway = {
  readonly url: string;
  /**
   * Closes the database: all SQLite connections of a process share one read-only file handle, which would prevent a
   * writer from writing.
   */
  releaseStore(): Promise<void>;
  /** Releases the address. Safe to call twice. */
  close(): Promise<void>;
};

type WaitingOptions = Required<Pick<GatewayOptions, 'clock'>> &
  GatewayOptions & {
    /** The current blocker. */
    readonly blocker: () => StartBlocker;
  };

/** Opens the page of a waiting gateway. Rejects if its port is taken. */
export async function openWaitingGateway(options: WaitingOptions): Promise<WaitingGateway> {
  const { config, log, clock, version } = options;
  const closers = createClosers(log);
  const away = new ParleyError('store_unavailable', 'Parley has not started yet.', {
    retry: { kind: 'later' },
  });
  const readable = config.databaseUrl === undefined ? readableStore(config.dataDir, away) : undefined;
  const store = releasable(readable ?? absentStore(away), away);
  closers.add('store', store.close);
  const { name, isDemo } = configuredModel(config, { clock, log });
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
      problems: [problemOf(options.blocker())],
    }),
    metrics: createMetrics({ store, clock, loop, formatter: idleDesk, isRedisReady: () => false }).metrics,
    operations: {
      ...localDeps(config),
      ...operationsBefore(options, away),
      hooks: { states: () => [] },
    },
    absentWebhookStatus: 503,
    mediaDir: mediaFolder(config.dataDir),
  });
  closers.add('http server', server.close);
  const { url } = await server.listen();
  await openWaitingChannels(options, { server, store, away, addCloser: closers.add });
  await publish(options, url, closers);
  return { url, releaseStore: store.release, close: closers.close };
}

/** Dependencies of operations before the stages exist: they show what can be read, and change nothing. */
function operationsBefore({ config, clock, reload, redact }: WaitingOptions, away: ParleyError) {
  const refuse = () => Promise.reject(away);
  return {
    owner: { shown: async () => [], dismiss: refuse, questions: async () => [], answer: refuse },
    agents: {
      ...{
        send: refuse,
        steer: refuse,
        requestSummary: refuse,
        wait: refuse,
        cancel: refuse,
        cancelRun: refuse,
      },
      ...{ payloadsOf: refuse, isBusy: refuse, workOf: refuse },
    },
    taskDoor: { send: refuse },
    lanes: { changes: noChanges(clock), leaseMs: config.lanes.leaseMs },
    commands: () => [],
    roster: () => agentRoster(config),
    keyedWrite,
    ...(redact && { redact }),
    ...(reload && { reload }),
  };
}

function noChanges(clock: Clock): LaneChanges {
  return { current: () => 0, waitAfter: (_known, waitMs, signal) => clock.wait(waitMs, signal) };
}

/** No Markdown is parsed before the start. */
const idleDesk = { counts: () => ({ parsed: 0, givenUp: 0 }) };

/** Opens the health server of a waiting worker, which reports the blocker. Rejects if its port is taken. */
export async function openWaitingWorker(options: WaitingOptions): Promise<WaitingGateway> {
  const { config, log, clock } = options;
  const closers = createClosers(log);
  const server = createHealthServer({
    ...{ port: config.health.port, log, clock, readiness: readinessFrom(options) },
    metrics: async () => 'parley_store_up 0\n',
    token: () => tokenFor(options),
  });
  closers.add('health server', server.close);
  const { url } = await server.listen();
  await publish(options, url, closers);
  return { url, releaseStore: async () => undefined, close: closers.close };
}

/** Lets the command line find this process. If the folder isn't writable, it falls back to the configured port. */
async function publish({ config, log }: WaitingOptions, url: string, closers: Closers): Promise<void> {
  try {
    const files = enterProcesses(config.dataDir);
    closers.add('process files', async () => {
      files.remove([files.name]);
      files.release();
    });
    await publishProcessAddress(files, { ...config, url }, closers);
  } catch (error) {
    log.debug({ error }, 'waiting.address-not-written');
  }
}

function readinessFrom({ blocker }: Pick<WaitingOptions, 'blocker'>) {
  return async () => readinessOf({ needed: [blocker().id], problems: [problemOf(blocker())] }, []);
}

function problemOf(blocker: StartBlocker): StatusProblem {
  return { id: blocker.id, text: waitingText(blocker) };
}

/** Returns the owner's text about a gateway that waits. */
export function waitingText({ reason }: StartBlocker): string {
  return `Parley can't start yet: ${reason} It keeps trying; messages wait for as long as their networks keep them.`;
}

/** Returns the access token or, before the first start has created one, a random token that grants nobody access. */
async function tokenFor({ config, onSecret }: GatewayOptions): Promise<string> {
  const token =
    config.token?.reveal() ??
    (await keptToken(config.dataDir).catch(() => undefined)) ??
    randomBytes(32).toString('base64url');
  onSecret?.(token);
  return token;
}

type ChannelParts = {
  readonly server: HttpServer;
  readonly store: Store;
  readonly away: ParleyError;
  readonly addCloser: (name: string, close: () => Promise<void>) => void;
};

/**
 * Shows the conversations of this machine's channels, which accept no messages. A network's adapter is created but not
 * started: a webhook whose network calls only once keeps the events it receives for the start.
 */
async function openWaitingChannels(
  options: WaitingOptions,
  { server, store, away, addCloser }: ChannelParts,
): Promise<void> {
  const { config, log, clock } = options;
  const gate = createInboundPolicy(config, textsFor(config.language, config.texts));
  const restoreMark = await store.read(readRestoreMark, {}).catch(() => '');
  const redact = options.redact ?? createRedactor(secretsOf(config)).redact;
  const feed = createFeed({ clock, log, live: noLiveEvents });
  const mediaDir = mediaFolder(config.dataDir);
  for (const { entry, line, accountName, state } of configuredAccounts(options.channels, config)) {
    const { localPeer: peer } = entry;
    if (state.kind === 'off') continue;
    const dataDir = join(config.dataDir, 'channels', line);
    try {
      const definition = await entry.load();
      if (peer === undefined) await mkdir(dataDir, { recursive: true, mode: 0o700 });
      const adapter = definition.create(definition.configSchema.parse(revealSettings(state.settings)), {
        ...{ log, clock, fetch, dataDir, routes: server.routesFor(line) },
        ...(peer !== undefined && {
          timeline: createTimeline({ store, feed, restoreMark, redact, mediaDir }, (route) =>
            localLaneKey(gate, { route, peer, accountName }),
          ),
        }),
      });
      if (peer !== undefined) await adapter.start(refusingIntake(away));
      addCloser(line, () => adapter.stop());
    } catch (error) {
      log.debug({ error, channel: line }, 'waiting.channel-omitted');
    }
  }
}

function refusingIntake(away: ParleyError): Intake {
  return {
    cursor: undefined,
    anchors: new Map(),
    accept: () => Promise.reject(away),
    trouble: () => undefined,
    renamed: () => undefined,
    gap: () => undefined,
  };
}
