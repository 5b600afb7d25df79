/**
 * Joins the stages, in the order in which a message flows through them: intake, queue, runs, outbox,
 * page. The only place that knows them all.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChannelEntry } from '#contracts/channel.ts';
import { type Clock, systemClock } from '#contracts/clock.ts';
import { type Closers, createClosers } from '#contracts/closers.ts';
import { peerId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import { noProbe, type Probe } from '#contracts/probe.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { type ChannelHost, createChannelHost } from './channel-host/channel-host.ts';
import { type ConfiguredAccount, configuredAccounts } from './channel-host/configured-accounts.ts';
import { createOwnerWatch, type OwnerWatch } from './channel-host/owner-watch.ts';
import { createCommandRegistrar } from './channel-host/register-commands.ts';
import { createTimelines, type Timelines } from './channel-host/timeline.ts';
import type { Config } from './config/config.ts';
import { revealSettings } from './config/secret.ts';
import { type Foundations, openFoundations } from './foundations.ts';
import { createIntake } from './inbound/accept.ts';
import { createCommandDesk } from './inbound/command-desk.ts';
import { nativeCommands } from './inbound/command-table.ts';
import { createFetcher } from './inbound/fetcher.ts';
import { type FreeSpace, watchFreeSpace } from './inbound/free-space.ts';
import { createGate, type Gate } from './inbound/gate.ts';
import { type ConfiguredModel, configuredModel } from './models/configured-model.ts';
import { createDeliverer, type Deliverer } from './outbox/deliverer.ts';
import { createPost, type Post } from './outbox/post.ts';
import { createPluginHost, type PluginEntry, type PluginReport } from './plugin-host/plugin-host.ts';
import { type LaneWorkers, startLaneWorkers } from './queue/lane-workers.ts';
import { createMotion, type Motion } from './queue/motion.ts';
import { startSweeper } from './queue/sweeper.ts';
import { createWakes, type Wakes } from './queue/wakes.ts';
import { type Notices, noticesFor } from './replies/notices.ts';
import { type ActiveRuns, createActiveRuns } from './runs/active-runs.ts';
import { createAgents } from './runs/agents.ts';
import { createLaneDriver } from './runs/drive-lane.ts';
import { executeRun, type RunDeps } from './runs/execute-run.ts';
import { runSettingsFrom } from './runs/run-settings.ts';
import { accessToken } from './server/access-token.ts';
import { gatewayHealth } from './server/gateway-health.ts';
import { createHttpServer, type HttpServer } from './server/http-server.ts';
import { sessionKeyOf } from './sessions/session-key-of.ts';
import { noEffects } from './store/intake/proposal.ts';
import { corePlugin } from './tools/core-tools.ts';

export type GatewayOptions = {
  readonly config: Config;
  readonly log: Log;
  readonly version: string;
  readonly channels: readonly ChannelEntry[];
  readonly plugins: readonly PluginEntry[];
  readonly clock?: Clock;
  readonly probe?: Probe;
  /** Answers in place of the configured model: for measurements of all the rest. */
  readonly model?: ConfiguredModel;
  /** Called with each secret made at run time, so that it never reaches a log. */
  onSecret?(value: string): void;
};

export interface Gateway {
  readonly url: string;
  /** Signs one browser in, once. */
  signInLink(): string;
  channels(): ReturnType<ChannelHost['states']>;
  readonly model: Pick<ConfiguredModel, 'name' | 'isDemo'>;
  readonly plugins: readonly PluginReport[];
  /** Resolves when every channel's first attempt to connect has ended. */
  readonly settled: Promise<void>;
  /** Resolves when the store is lost for good: only a new process can go on. */
  readonly broken: Promise<void>;
  /** Stops intake, hands over what runs, and releases everything. Safe to call twice. */
  stop(): Promise<void>;
}

/** Throws ParleyError: `data_folder_locked`, `config_invalid`, `redis_unavailable`, `store_unavailable`. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, log, clock = systemClock } = options;
  const closers = createClosers(log);
  try {
    const foundations = await openFoundations({ config, log, clock, closers });
    const base: Base = {
      ...options,
      clock,
      probe: options.probe ?? noProbe,
      closers,
      ...foundations,
      notices: noticesFor(config.language, config.texts),
      motion: createMotion(),
      timelines: createTimelines({ store: foundations.store, log }),
      model: options.model ?? configuredModel(config.model, clock),
    };
    return await joinStages(base);
  } catch (error) {
    await closers.close();
    throw error;
  }
}

/** What every stage may use. */
type Base = GatewayOptions &
  Foundations & {
    readonly clock: Clock;
    readonly probe: Probe;
    readonly closers: Closers;
    readonly notices: Notices;
    readonly motion: Motion;
    readonly timelines: Timelines;
    readonly model: ConfiguredModel;
  };

/** Opened from the inside out, so that closing goes from the door inwards. */
async function joinStages(base: Base): Promise<Gateway> {
  const { config, log, clock, closers, redis, store, motion, timelines, model } = base;
  const space = watchFreeSpace({ folder: config.dataDir, clock, log });
  closers.add('disk watch', space.stop);
  const wakes = createWakes({ redis: redis.connections, keys: redis.keys, log });
  closers.add('wakes', wakes.close);
  const active = createActiveRuns({ ...base, ...config.lanes });
  closers.add('leases', active.close);

  const gate = createGate(config, base.notices);
  const owner = joinOwner(base);
  const host = joinIntake(base, { gate, space, owner });
  const fetcher = createFetcher({
    ...base,
    mediaDir: join(config.dataDir, 'media'),
    maxBytes: config.media.maxMb * 1e6,
    channelFor: host.find,
    start: motion.start,
  });
  closers.add('media', fetcher.stop);
  const { deliverer, post } = joinOutbox(base, host);
  let workers: LaneWorkers | undefined;
  const changed = (laneKey: string) => timelines.publish(laneKey, { kind: 'changed' });
  motion.connect({
    cancel: active.cancel,
    wake: wakes.wake,
    deliver: deliverer.deliver,
    fetch: fetcher.fetch,
    changed,
    reserve: (most) => workers?.reserve('main', most),
  });

  const server = await openServer(base, { host, space, owner });
  const joined = await joinRuns(base, { host, post, active, wakes, outbox: deliverer });
  workers = joined.workers;
  const sweeper = startSweeper({
    ...base,
    ...owner,
    wakes,
    contextLimit: config.groups.contextLimit,
    deliver: deliverer.deliver,
    fetch: fetcher.fetch,
  });
  closers.add('sweeper', sweeper.stop);
  closers.add('intake', host.stopReceiving);

  const { url } = await server.listen();
  const settled = openChannels(base, { host, gate, server });
  return {
    url,
    signInLink: server.signInLink,
    channels: host.states,
    model,
    plugins: joined.plugins,
    settled,
    broken: store.broken,
    stop: closers.close,
  };
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

type IntakeParts = { readonly gate: Gate; readonly space: FreeSpace; readonly owner: OwnerWatch };

/** Steps 1 to 4: what the channels hand over is stored. */
function joinIntake(base: Base, { gate, space, owner }: IntakeParts): ChannelHost {
  const { store, closers, motion, holder, model } = base;
  const agentName = (id: string) => base.config.agents.find((agent) => agent.id === id)?.name ?? id;
  const commands = createCommandDesk({ store, gate, modelName: model.name, agentName });
  const deps = {
    ...base,
    gate,
    commands,
    start: motion.start,
    reserve: motion.reserve,
    hasSpace: space.isEnough,
  };
  const registrar = createCommandRegistrar({ ...base, commands: nativeCommands });
  closers.add('command menus', registrar.stop);
  return createChannelHost({
    ...base,
    intakeFor: ({ account, accountName }, { account: key, epoch }) =>
      createIntake(deps, { account: key, epoch, holder, botName: account.name, accountName }),
    onReceiving: registrar.register,
    onState: owner.onState,
    onGap: owner.onGap,
  });
}

/** Step 9: what was stored is delivered. */
function joinOutbox(base: Base, host: ChannelHost): { readonly deliverer: Deliverer; readonly post: Post } {
  const { config, closers, timelines } = base;
  const post = createPost({ ...base, deliver: (conversationKey) => deliverer.deliver(conversationKey) });
  const deliverer = createDeliverer({
    ...base,
    settings: config.outbox,
    adapterFor: (route) => host.find(route),
    onSettled: ({ laneKey }) => {
      post.settled();
      if (laneKey !== undefined) timelines.publish(laneKey, { kind: 'changed' });
    },
  });
  closers.add('outbox', deliverer.stop);
  return { deliverer, post };
}

type RunParts = {
  readonly outbox: Deliverer;
  readonly host: ChannelHost;
  readonly post: Post;
  readonly active: ActiveRuns;
  readonly wakes: Wakes;
};

/** Steps 5 to 8: lanes are worked, one run each. */
async function joinRuns(
  base: Base,
  { host, post, active, wakes, outbox }: RunParts,
): Promise<{ readonly plugins: readonly PluginReport[]; readonly workers: LaneWorkers }> {
  const { config, log, closers, store, redis, motion, timelines, clock } = base;
  const plugins = createPluginHost({ log });
  closers.add('plugins', plugins.close);
  const capabilitiesFor = (run: { readonly route: ReplyRoute }) =>
    host.find(run.route)?.definition.capabilities;
  const core = { definition: corePlugin({ store, post, capabilitiesFor }), config: {} };
  const reports = await plugins.load([core, ...base.plugins]);

  const agents = createAgents(config);
  const runDeps: RunDeps = {
    ...base,
    model: base.model.provider,
    active,
    outbox,
    settings: runSettingsFrom(config),
    agent: agents.settingsOf,
    systemFor: (run, scene) => agents.promptFor(run, { ...scene, now: clock.now() }),
    toolsFor: plugins.toolsFor,
    channelFor: host.find,
    start: motion.start,
    publish: timelines.publish,
  };
  const driver = createLaneDriver({
    ...base,
    wakes,
    leaseMs: config.lanes.leaseMs,
    maxTries: config.run.maxTries,
    maxRuns: config.lanes.maxRunsPerTurn,
    maxHoldMs: config.lanes.maxHoldMs,
    start: motion.start,
    execute: (run, options) => executeRun(runDeps, run, options),
  });
  const { main } = config.lanes.concurrency;
  const workers = startLaneWorkers({
    redis: redis.connections,
    keys: redis.keys,
    log,
    concurrency: { main },
    driver,
  });
  closers.add('workers', workers.close);
  return { plugins: reports, workers };
}

async function openServer(
  base: Base,
  { host, space, owner }: { host: ChannelHost; space: FreeSpace; owner: OwnerWatch },
): Promise<HttpServer> {
  const { config, redis, closers } = base;
  const token = config.token?.reveal() ?? (await accessToken(config.dataDir));
  base.onSecret?.(token);
  const server = createHttpServer({
    ...base,
    ...gatewayHealth({
      ...base,
      channels: host.states,
      isRedisReady: redis.connections.isReady,
      hasSpace: space.isEnough,
    }),
    host: config.host,
    port: config.port,
    token,
    allowedHosts: config.allowedHosts,
    notices: owner,
  });
  closers.add('http server', server.close);
  return server;
}

type ChannelParts = { readonly host: ChannelHost; readonly gate: Gate; readonly server: HttpServer };

async function openChannels(base: Base, { host, gate, server }: ChannelParts): Promise<void> {
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
    const deps = { dataDir, routes: server.routesFor(line), ...timeline };
    const named = accountName === undefined ? {} : { accountName };
    await host.run({ id, ...named, load, settings: revealSettings(state.settings), deps });
  };
  await Promise.all(configuredAccounts(base.channels, config).map(open));
}

/** The session of the person who sits at a channel of this machine. */
function laneKeyOf(gate: Gate, route: ReplyRoute, peer: string): string {
  const event = { route, chat: { kind: 'dm' }, sender: { id: peerId(peer) } } as const;
  const { defaultAgent: agent, dmScope, identityLinks } = gate;
  return sessionKeyOf(event, { agent, dmScope, identityLinks });
}
