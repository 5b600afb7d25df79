/**
 * Wires the stages in the order in which messages flow through them: intake, queue, runs, outbox, page. It is the only
 * module that knows them all.
 */

import { systemClock } from '#channel-kit/system-clock.ts';
import { noProbe } from '#contracts/probe.ts';
import type { AlertReporter } from './channel-host/alert-reporter.ts';
import { type ChannelHost, createChannelHost } from './channel-host/channel-host.ts';
import { createCommandRegistrar } from './channel-host/register-commands.ts';
import { nativeCommands } from './commands/list.ts';
import type { Config } from './config/config.ts';
import type { PluginChange } from './config/live-settings.ts';
import { mediaFolder } from './config/media-folder.ts';
import { secretsOf } from './config/secrets-of.ts';
import { createHooks, type Hooks } from './hooks/hooks.ts';
import type { Fetcher } from './inbound/attachment-fetcher.ts';
import { authorityOf } from './inbound/authorize.ts';
import { createInboundPolicy, type InboundPolicy } from './inbound/inbound-policy.ts';
import { createIntake } from './inbound/intake.ts';
import type { FreeSpace } from './inbound/media.ts';
import { createLoopWatch } from './logging/loop-watch.ts';
import { createRedactor } from './logging/redaction.ts';
import { createBudgetRules } from './models/budget-rules.ts';
import { ratesOf } from './models/call-bound.ts';
import { type ConfiguredModel, claimModels } from './models/models.ts';
import { createDeliverer, type Deliverer } from './outbox/deliverer.ts';
import { createToolSender, type ToolSender } from './outbox/tool-sender.ts';
import type { PluginReport } from './plugin-host/plugin-findings.ts';
import { logUnknownTools, type PluginHost } from './plugin-host/plugin-host.ts';
import type { PluginEntry } from './plugin-host/replace-plugins.ts';
import { createClosers } from './processes/closers.ts';
import { createEffectDispatcher } from './queue/effect-dispatcher.ts';
import { createFailureStreaks } from './queue/failure-streaks.ts';
import { createFeed } from './queue/feed.ts';
import { alonePatienceMs, type LaneWorkers, startLaneWorkers } from './queue/lane-workers.ts';
import { createRoomWaker, type RoomWaker } from './queue/room-waker.ts';
import { type Sweeper, startSweeper } from './queue/sweeper.ts';
import { createWakes, type Wakes } from './queue/wakes.ts';
import { createMarkdownFormatter } from './replies/markdown-formatter.ts';
import { createTextShaper } from './replies/text-shaper.ts';
import { settingsApplier } from './roles/apply-settings.ts';
import {
  healthOf,
  openChannels,
  openHealth,
  openServer,
  wireGatewayRole,
  wireWaitingNotices,
} from './roles/gateway-role.ts';
import { openInfrastructure, openLiveEvents } from './roles/infrastructure.ts';
import { openModel, suspensionAlerts } from './roles/model-alerts.ts';
import type { GatewayOptions, StageDeps } from './roles/stage-deps.ts';
import { wireImages, wireMedia } from './roles/wire-media.ts';
import { type FoundPlugins, wirePlugins } from './roles/wire-plugins.ts';
import { type TaskUpkeep, wireTasks } from './roles/wire-tasks.ts';
import { type ActiveRuns, createActiveRuns } from './runs/active-runs.ts';
import { type Agents, createAgents, marksFrom, runSettingsFrom } from './runs/agents.ts';
import { createRunBudgets } from './runs/call-ledger.ts';
import { createLaneDriver } from './runs/drive-lane.ts';
import { executeRun, type RunDeps } from './runs/execute-run.ts';
import { createFraming } from './runs/framing.ts';
import { createPermit } from './runs/permit-call.ts';
import { persistHookOf } from './runs/run-hooks.ts';
import { createMetrics } from './server/metrics/metrics.ts';
import { readRolesOf } from './store/access/sender-roles.ts';
import { noEffects } from './store/base/effects.ts';
import { subagentsPlugin } from './subagents/subagents-plugin.ts';
import { permittedTools } from './subagents/tool-policy.ts';
import { textsFor } from './texts/chat-texts.ts';
import { attachFiles } from './tools/attach-files.ts';
import { corePlugin, outgoingFilesFor } from './tools/core-tools.ts';

/** One running process of Parley. */
export interface Gateway {
  /** The page's address, and the one for phones; absent in a worker. */
  readonly url?: string;
  readonly phoneUrl?: string;
  /** Address at which this process serves `/healthz`, `/readyz` and `/metrics`. */
  readonly healthUrl: string;
  /** Returns a link that signs one browser in, once; absent without a page. */
  signInLink?(): string;
  channels(): ReturnType<ChannelHost['states']>;
  readonly model: Pick<ConfiguredModel, 'name' | 'isDemo'>;
  plugins(): readonly PluginReport[];
  /** Resolves when every channel's first attempt to connect has ended, and every plugin's check. */
  readonly settled: Promise<void>;
  /** Resolves when the store is lost for good, so that only a new process can continue. */
  readonly broken: Promise<void>;
  /**
   * Puts newly read settings and plugins from outside into force, as far as that is possible without a restart. Returns
   * which plugins have changed or failed.
   */
  apply(config: Config, plugins: readonly PluginEntry[]): Promise<readonly PluginChange[]>;
  /** Stops intake, hands over active runs, and releases everything. Safe to call twice. */
  stop(): Promise<void>;
}

/** Starts every stage of this process's role. Throws the faults of `openInfrastructure`. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, log, clock = systemClock } = options;
  const closers = createClosers(log);
  try {
    const found: FoundPlugins & { hooks?: Hooks } = {};
    const persistHook = () => persistHookOf(found.hooks);
    const infrastructure = await openInfrastructure({ config, log, clock, closers, persistHook });
    const loop = createLoopWatch({ log });
    closers.add('loop watch', async () => loop.stop());
    const formatter = createMarkdownFormatter({ log });
    closers.add('markdown formatter', formatter.close);
    const { store, redis, holder } = infrastructure;
    const live = openLiveEvents(config, { redis, holder, log });
    closers.add('live events', live.close);
    const redact = options.redact ?? createRedactor(secretsOf(config)).redact;
    const hooks = createHooks({ log, clock, onSuspended: suspensionAlerts(store) });
    found.hooks = hooks;
    if (config.hooks.length > 0) {
      const { openScriptHooks } = await import('./hooks/script-hooks.ts');
      await openScriptHooks(config, { hooks, log });
    }
    const pluginProvider = (name: string) => found.plugins?.provider(name);
    const model = await openModel({ ...options, store, clock, closers, redact, hooks }, pluginProvider);
    const probe = options.probe ?? noProbe;
    const stage: StageDeps = {
      ...options,
      ...{ clock, probe, closers, live, loop, redact },
      ...infrastructure,
      shaper: createTextShaper(formatter),
      receives: config.role !== 'worker',
      works: config.role !== 'gateway',
      isAlone: config.role === 'all' && config.databaseUrl === undefined,
      texts: textsFor(config.language, config.texts),
      dispatcher: createEffectDispatcher(probe),
      failures: createFailureStreaks({ store, log, redact }),
      feed: createFeed({ clock, log, live }),
      hooks,
      meters: createMetrics({
        ...{ store, clock, loop, formatter, hooks: hooks.states },
        isRedisReady: redis.connections.isReady,
        ...(model.waiting && { modelWaits: model.waiting }),
      }),
      model,
    };
    return await wireStages(stage, found);
  } catch (error) {
    await closers.close();
    throw error;
  }
}

/** Opens the stages from the inside out, so that closing begins with intake. */
async function wireStages(stage: StageDeps, found: FoundPlugins): Promise<Gateway> {
  const { config, clock, log, closers, redis, store, holder, failures, dispatcher, model } = stage;
  const wakes = createWakes({ redis: redis.connections, keys: redis.keys, log });
  closers.add('wakes', wakes.close);
  const active = createActiveRuns({ store, holder, clock, log, ...config.lanes });
  closers.add('leases', active.close);

  const policy = createInboundPolicy(config, stage.texts);
  const gatewayRole = stage.receives ? wireGatewayRole(stage) : undefined;
  const { plugins, agents } = wirePlugins(stage, policy, found);
  const { space, owner } = gatewayRole ?? {};
  const { host, refreshMenus } = wireIntake(stage, { policy, plugins, space, owner });
  const fetcher = wireMedia(stage, { policy, host, space });
  const { deliverer, toolSender } = wireOutbox(stage, host);
  const rooms = createRoomWaker({ store, log, start: dispatcher.dispatch });
  await loadPlugins(stage, { plugins, host, toolSender });
  const server = gatewayRole && (await openServer(stage, { host, policy, plugins, agents, ...gatewayRole }));
  const workers = stage.works
    ? wireRuns(stage, { policy, host, plugins, active, wakes, rooms, outbox: deliverer })
    : undefined;
  const tasks = wireTasks(stage, plugins);
  const sweeper = startSweeper({
    ...{ store, clock, log, failures },
    onAlarm: (laneKey, waitedMs) => gatewayRole?.owner.onAlarm(laneKey, waitedMs),
    onAlarmOver: (laneKey) => gatewayRole?.owner.onAlarmOver(laneKey),
    ...(gatewayRole && { openAlarms: gatewayRole.owner.openAlarms }),
    wakes,
    ...{ contextLimit: config.groups.contextLimit, expireMs: config.outbox.expireMs },
    caps: config.lanes.concurrency,
    reapDead: async () => {
      if (await stage.processes.reapDead()) stage.live.publish({ kind: 'freed' });
    },
    drive: (lane) => workers?.drive(lane.class, lane.laneKey) ?? false,
    ...{ worksOn: active.worksOn, deliver: deliverer.deliver, fetch: fetcher.fetch },
    ...{ start: dispatcher.dispatch, resume: rooms.resume, ...tasks },
    ...(gatewayRole && { notifyWaiting: wireWaitingNotices(stage, host) }),
  });
  closers.add('sweeper', sweeper.stop);
  wireEffects(stage, { active, wakes, deliverer, fetcher, host, workers, sweeper, tasks });
  closers.add('intake', host.stopReceiving);
  const page = server && { ...(await server.listen()), signInLink: server.signInLink };
  const { url: healthUrl } = page ?? (await openHealth(stage, host));
  closers.add('hooks', () => stage.hooks.observe('gateway_stop', {}));
  void stage.hooks.observe('gateway_start', { version: stage.version, role: config.role });
  const settled = openChannels(stage, { host, policy, server, plugins });
  // Printing the status table and storing the compiled code still belong to the start.
  const watch = () => setImmediate(() => stage.loop.start(active.ids));
  void settled.then(watch, watch);
  return {
    ...page,
    healthUrl,
    channels: host.states,
    model,
    plugins: plugins.reports,
    settled: Promise.all([settled, plugins.checked()]).then(() => undefined),
    broken: store.broken,
    apply: wireReload(stage, { policy, gatewayRole, plugins, refreshMenus }),
    stop: closers.close,
  };
}

type ReloadParts = Parameters<typeof settingsApplier>[1] & {
  readonly plugins: PluginHost;
  readonly refreshMenus: () => void;
};

/** Creates the function that puts a reloaded configuration into force. */
function wireReload(stage: StageDeps, { plugins, refreshMenus, ...parts }: ReloadParts): Gateway['apply'] {
  const applySettings = settingsApplier(stage, parts);
  return async (next, outside) => {
    applySettings(next);
    const changes = await plugins.replace(outside);
    if (stage.works) logUnknownTools(stage, plugins.reports());
    refreshMenus();
    return changes;
  };
}

type EffectTargets = {
  readonly active: ActiveRuns;
  readonly wakes: Wakes;
  readonly deliverer: Deliverer;
  readonly fetcher: Fetcher;
  readonly host: ChannelHost;
  readonly workers: LaneWorkers | undefined;
  readonly sweeper: Sweeper;
  readonly tasks: TaskUpkeep;
};

/** Connects a commit's effects to the stages here, or notifies the other processes about them. */
function wireEffects(
  { dispatcher, live, feed, log, loop, meters, hooks }: StageDeps,
  targets: EffectTargets,
): void {
  const { active, wakes, deliverer, fetcher, host, workers, sweeper, tasks } = targets;
  dispatcher.connect({
    cancel: (runId, reason) => {
      if (!active.cancel(runId, reason)) live.publish({ kind: 'cancel', runId });
    },
    wake: (wake) => {
      const wakeOthers = () => wakes.wake(wake);
      return workers ? workers.driveSoon(wake, wakeOthers) : wakeOthers();
    },
    deliver: (conversationKey) => {
      if (!deliverer.deliver(conversationKey)) live.publish({ kind: 'deliver', conversationKey });
    },
    fetch: fetcher.fetch,
    changed: (laneKey) => {
      active.arrived(laneKey);
      feed.publish(laneKey, { kind: 'changed' });
    },
    overflowed: (overflow) => {
      feed.publish(overflow.laneKey, { kind: 'overflowed' });
      log.info(overflow, 'queue.overflowed');
      meters.overflowed(overflow.drop);
    },
    gaveUp: feed.gaveUp,
    childEnded: (id) => void hooks.observe('subagent_ended', { id }),
    sessionEnded: (sessionId) => void hooks.observe('session_end', { sessionId }),
    taskChanged: ({ id, isUnsettled }) => {
      if (isUnsettled) tasks.settle(id);
      tasks.show(id);
    },
    reserve: (laneClass, most) => {
      loop.watchClosely();
      return workers?.reserve(laneClass, most);
    },
  });
  live.listen((event) => {
    switch (event.kind) {
      case 'cancel':
        return active.look(event.runId);
      case 'freed':
        return sweeper.sweepNow();
      case 'deliver':
        return void deliverer.deliver(event.conversationKey);
      case 'timeline':
        if (event.event.kind === 'changed') active.arrived(event.laneKey);
        return feed.hear(event.laneKey, event.event);
      case 'follow':
        return feed.follow(event.laneKey, event.isNew);
      case 'draft':
        return host.showDraft(event);
      default:
        return event satisfies never;
    }
  });
}

type IntakeParts = {
  readonly plugins: PluginHost;
  readonly policy: InboundPolicy;
  readonly space: FreeSpace | undefined;
  readonly owner: AlertReporter | undefined;
};

/** Wires steps 1 to 4: intake stores what the channels receive. */
function wireIntake(
  stage: StageDeps,
  { policy, plugins, space, owner }: IntakeParts,
): { readonly host: ChannelHost; readonly refreshMenus: () => void } {
  const { closers, clock, log, store, dispatcher, holder, meters, model, texts } = stage;
  const agentName = (id: string) => stage.config.agents.find((agent) => agent.id === id)?.name ?? id;
  const contextWindow = (name: string) => model.models.stackFor(name).model().contextWindow;
  const agentReasoning = (id: string) =>
    stage.config.agents.find((agent) => agent.id === id)?.reasoning ?? 'off';
  const { models } = model;
  const budgets = createBudgetRules(stage.config);
  const hooks = stage.hooks.states;
  const { displayOn } = runSettingsFrom(stage.config);
  const commands = { models, budgets, agentReasoning, displayOn, agentName, contextWindow, hooks };
  const deps = {
    ...{ store, clock, log, probe: stage.probe, meters, policy, hooks: stage.hooks },
    commands: { ...commands, agents: stage.config.agents },
    ...{ start: dispatcher.dispatch, reserve: dispatcher.reserve },
    hasSpace: () => space?.isEnough() ?? true,
  };
  const registrar = createCommandRegistrar({
    ...{ store, clock, log },
    get commands() {
      return nativeCommands(texts, plugins.commands());
    },
  });
  closers.add('command menus', registrar.stop);
  const { receives, isAlone, live } = stage;
  const host = createChannelHost({
    ...{ store, holder, clock, log, receives, isAlone, live },
    intakeFor: ({ account, accountName }, { account: key, epoch }) =>
      createIntake(deps, { account: key, epoch, holder, botName: () => account.name, accountName }),
    onReceiving: registrar.register,
    onState: (line, state, account) => owner?.onState(line, state, account),
    onGap: (channel, gap) => {
      meters.missed(channel.definition.id);
      owner?.onGap(channel, gap);
    },
  });
  return { host, refreshMenus: registrar.refresh };
}

/** Wires step 9: the outbox delivers stored parts. */
function wireOutbox(
  stage: StageDeps,
  host: ChannelHost,
): { readonly deliverer: Deliverer; readonly toolSender: ToolSender } {
  const { config, clock, log, closers, store, holder, probe, journal, failures, meters, feed, hooks } = stage;
  const deliver = (conversationKey: string) =>
    stage.dispatcher.dispatch({ ...noEffects(), deliveries: [conversationKey] });
  const toolSender = createToolSender({ store, clock, deliver });
  const deliverer = createDeliverer({
    ...{ store, holder, clock, log, probe, journal, failures },
    ...{ mediaDir: mediaFolder(config.dataDir), maxUploadsMb: config.media.maxUploadsMb },
    settings: config.outbox,
    adapterFor: host.serving,
    onSettled: ({ part, laneKey, result, ageMs }) => {
      toolSender.settled();
      meters.delivered({ channel: part.route.channel, result, ageMs });
      const sessionKey = laneKey === undefined ? {} : { sessionKey: laneKey };
      void hooks.observe('message_sent', { ...sessionKey, route: part.route, part: part.key, result });
      if (laneKey === undefined) return;
      feed.publish(laneKey, { kind: 'changed' });
      feed.publish(laneKey, { kind: 'delivery', part: part.key, result });
    },
  });
  closers.add('outbox', deliverer.stop);
  return { deliverer, toolSender };
}

type RunParts = {
  readonly policy: InboundPolicy;
  readonly outbox: Deliverer;
  readonly host: ChannelHost;
  readonly plugins: PluginHost;
  readonly active: ActiveRuns;
  readonly wakes: Wakes;
  readonly rooms: RoomWaker;
};

/** Wires the decisions about calls: by the agents' rules, and by the rights that people have at present. */
function wirePermit(
  store: RunDeps['store'],
  { agents, policy }: { readonly agents: Agents; readonly policy: InboundPolicy },
): RunDeps['permit'] {
  return createPermit({
    store,
    rulesOf: (agent) => agents.settingsOf(agent).tools.rules ?? [],
    authoritiesOf: async (refs) => {
      const roles = await store.read(readRolesOf, { refs });
      return refs.map((ref) => authorityOf(ref, policy.access, roles.get(ref)));
    },
  });
}

/** Wires steps 5 to 8: workers claim lanes and execute their runs. */
function wireRuns(
  stage: StageDeps,
  { policy, host, plugins, active, wakes, rooms, outbox }: RunParts,
): LaneWorkers {
  const { config, clock, log, closers, redis, store, holder, probe, texts, redact, dispatcher } = stage;
  const agents = createAgents(config, { log, hooks: stage.hooks });
  const { models, tracer } = stage.model;
  const sendsFiles = outgoingFilesFor({ config, workspaceReader: plugins.workspaceReader, agents });
  const { capabilitiesFor } = host;

  const timeZone = config.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const framing = createFraming({ clock, timeZone });
  const budgets = createRunBudgets({ store, clock, rules: createBudgetRules(config), policy });
  const rates = ratesOf(models);
  const marks = marksFrom(config.queue.waitingNotice, stage.channels);
  const runDeps: RunDeps = {
    ...{ store, clock, log, probe, texts, redact },
    ...{ models, tracer, budgets, rates, active, outbox, marks },
    ...{ feed: stage.feed, journal: stage.journal, shaper: stage.shaper, hooks: stage.hooks },
    settings: runSettingsFrom(config),
    ...wireImages(stage),
    agent: agents.settingsOf,
    skillsFor: agents.skillsOf,
    framing,
    systemFor: agents.promptFor,
    attachFiles: (output, ctx) => attachFiles({ ...sendsFiles, capabilitiesFor }, output, ctx),
    toolsFor: (run) => permittedTools(plugins.toolsFor(run), run, agents.settingsOf(run.agentId)),
    ...{ channelFor: host.find, capabilitiesFor },
    start: dispatcher.dispatch,
    freedRoom: rooms.look,
    approvals: { validMs: config.access.approvalMinutes * 60_000, owners: policy.namedOwners },
    permit: wirePermit(store, { agents, policy }),
  };
  const driver = createLaneDriver({
    ...{ store, holder, clock, log, probe, redact, framing, wakes, marks },
    failures: stage.failures,
    leaseMs: config.lanes.leaseMs,
    maxAttempts: config.run.maxAttempts,
    ...{ rates, uncounted: budgets.uncounted },
    ...claimModels(models, config),
    caps: config.lanes.concurrency,
    maxRuns: config.lanes.maxRunsPerClaim,
    maxHoldMs: config.lanes.maxHoldMs,
    start: dispatcher.dispatch,
    execute: async (run, options) => {
      // Only just after a start is there anything to wait for.
      await plugins.checked();
      return executeRun(runDeps, run, options);
    },
  });
  const workers = startLaneWorkers({
    redis: redis.connections,
    keys: redis.keys,
    log,
    concurrency: config.lanes.concurrency,
    driver,
    patienceMs: stage.isAlone ? alonePatienceMs : 0,
  });
  closers.add('workers', workers.close);
  return workers;
}

type PluginWiring = {
  readonly plugins: PluginHost;
  readonly host: ChannelHost;
  readonly toolSender: ToolSender;
};

/**
 * Loads the core tools, the sub-agents and the configured plugins, in this order. A process without slots only needs
 * those from outside, for their commands, routes and channels.
 */
async function loadPlugins(stage: StageDeps, { plugins, host, toolSender }: PluginWiring): Promise<void> {
  const outside = stage.plugins.filter((entry) => !('definition' in entry) || entry.isOutside);
  if (!stage.works) return void (await plugins.load(outside));
  const { config, store, log, probe, dispatcher, shaper, hooks } = stage;
  const start = dispatcher.dispatch;
  const agents = createAgents(config, { log, hooks });
  const { capabilitiesFor } = host;
  const { workspaceReader } = plugins;
  const core = corePlugin({
    ...{ store, start, config, shaper, workspaceReader, toolSender, capabilitiesFor, agents, hooks },
    gateway: {
      status: healthOf(stage, host).status,
      plugins: plugins.reports,
      ...(stage.reload && { reload: stage.reload }),
    },
    fitImage: wireImages(stage).fitImage,
    channelTools: stage.channels.flatMap(({ tools }) => tools ?? []),
    channelToolsFor: (route) => host.find(route)?.definition.tools ?? [],
  });
  const subagents = subagentsPlugin({ config, store, probe, models: stage.model.models, start, hooks });
  const own = [core, subagents].map((definition) => ({ definition, config: {} }));
  logUnknownTools(stage, await plugins.load([...own, ...stage.plugins]));
}
