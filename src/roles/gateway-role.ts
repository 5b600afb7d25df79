import type { ReplyRoute } from '#contracts/route.ts';
/**
 * The parts that only a receiving process has (page, owner alerts, channel connections), and a worker's health server.
 */

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { accountId, agentId, conversationId } from '#contracts/ids.ts';
import { type AlertReporter, createAlertReporter } from '../channel-host/alert-reporter.ts';
import type { ChannelHost } from '../channel-host/channel-host.ts';
import { type ConfiguredAccount, configuredAccounts } from '../channel-host/configured-accounts.ts';
import { createTimeline } from '../channel-host/timeline.ts';
import { renderRecord } from '../cli/render-record.ts';
import { renderTrace } from '../cli/render-trace.ts';
import { nativeCommands } from '../commands/list.ts';
import { localOwners } from '../config/load-config.ts';
import { mediaFolder } from '../config/media-folder.ts';
import { revealSettings } from '../config/secret.ts';
import { bytesOf } from '../config/units.ts';
import { type InboundPolicy, localLaneKey, queueSettingsFor } from '../inbound/inbound-policy.ts';
import { type FreeSpace, watchFreeSpace } from '../inbound/media.ts';
import { countLaneChanges } from '../operations/lanes.ts';
import { createOwnerQuestions, type OwnerQuestions } from '../outbox/owner-questions.ts';
import { pluginProblems } from '../plugin-host/plugin-findings.ts';
import type { PluginHost } from '../plugin-host/plugin-host.ts';
import type { RegisteredChannel } from '../plugin-host/plugin-scope.ts';
import { createWaitingNotices } from '../queue/notify-waiting.ts';
import { createMarkDisplay } from '../queue/show-marks.ts';
import { accessToken } from '../server/access-token.ts';
import { gatewayHealth } from '../server/gateway-health.ts';
import { createHealthServer } from '../server/health-server.ts';
import { createHttpServer, type HttpServer } from '../server/http-server.ts';
import { type AgentService, createAgentService } from '../service/agent-service.ts';
import { findAgent } from '../service/find-agent.ts';
import {
  createProgramCalls,
  type ProgramCalls,
  programAccount,
  programLaneKey,
} from '../service/program-calls.ts';
import { createSessionFeeds } from '../service/session-feeds.ts';
import { createTaskDoor, type TaskDoor } from '../service/task-door.ts';
import { createWebhooks, type Webhooks } from '../service/webhooks.ts';
import { keyedWrite } from '../steps.ts';
import { noEffects } from '../store/base/effects.ts';
import { type LaneSpec, newRowId } from '../store/base/keys.ts';
import { hasWorker } from '../store/processes/process-records.ts';
import { agentRoster } from '../subagents/agent-roster.ts';
import { staleAlerts } from './model-alerts.ts';
import type { StageDeps } from './stage-deps.ts';
import { wireReader } from './wire-media.ts';

/** The disk watch, the owner's alerts and questions, and the lists that a reload changes in place. */
export type GatewayRoleParts = {
  readonly space: FreeSpace;
  readonly owner: AlertReporter;
  readonly questions: OwnerQuestions;
  readonly owners: string[];
  readonly allowedHosts: string[];
};

/** Starts the parts that only a receiving process has. */
export function wireGatewayRole(stage: StageDeps): GatewayRoleParts {
  const { config, clock, log, probe, closers, store, texts, dispatcher } = stage;
  const space = watchFreeSpace({ folder: config.dataDir, clock, log });
  closers.add('disk watch', space.stop);
  const owners = [...config.owners];
  const start = dispatcher.dispatch;
  const questions = createOwnerQuestions({ store, clock, log, probe, texts, owners, start });
  closers.add('owner questions', questions.stop);
  const owner = wireOwner(stage, owners);
  return { space, owner, questions, owners, allowedHosts: [...config.allowedHosts] };
}

/** Sends alerts to the owner as an ordinary message, and shows them on the page. */
function wireOwner(stage: StageDeps, owners: readonly string[]): AlertReporter {
  const { channels, clock, log, closers, store, texts, dispatcher } = stage;
  const owner = createAlertReporter({
    ...{ store, clock, log, texts, owners },
    timeZone: stage.config.timeZone,
    localChannels: channels.flatMap(({ id, localPeer }) => (localPeer === undefined ? [] : [id])),
    deliver: (conversationKey) => dispatcher.dispatch({ ...noEffects(), deliveries: [conversationKey] }),
  });
  closers.add('owner notices', owner.stop);
  owner.endWhere(staleAlerts(stage.config, channels));
  return owner;
}

/** Notifies senders whose message has been queued for more than a moment, or whom no process can answer. */
export function wireWaitingNotices(
  { config, store, log, texts, dispatcher }: StageDeps,
  host: ChannelHost,
): () => Promise<void> {
  const capabilitiesFor = (route: ReplyRoute) => host.find(route)?.definition.capabilities;
  const start = dispatcher.dispatch;
  const notices = createWaitingNotices({
    store,
    log,
    settings: config.queue.waitingNotice,
    line: texts.queueWaiting,
    unworkedLine: texts.queueUnworked,
    hasWorker: async () => config.role !== 'gateway' || store.read(hasWorker, {}),
    capabilitiesFor,
    start,
  });
  const marks = createMarkDisplay({ store, log, capabilitiesFor, start });
  return async () => {
    await notices.look();
    await marks.look();
  };
}

/** Creates the page's server. It starts listening when `listen` is called, which also publishes its address. */
export async function openServer(
  stage: StageDeps,
  {
    host,
    policy,
    space,
    owner,
    questions,
    allowedHosts,
    plugins,
    agents,
  }: GatewayRoleParts & {
    readonly host: ChannelHost;
    readonly policy: InboundPolicy;
    readonly plugins: PluginHost;
    readonly agents: AgentService;
  },
): Promise<HttpServer> {
  const { config, closers } = stage;
  const token = await tokenOf(stage);
  const mediaDir = mediaFolder(config.dataDir);
  const server = createHttpServer({
    ...healthOf(stage, host, { hasSpace: space.isEnough, plugins }),
    plugins,
    ...{ store: stage.store, log: stage.log, clock: stage.clock, version: stage.version },
    host: config.host,
    port: config.port,
    token,
    allowedHosts,
    trustedProxies: config.trustedProxies,
    maxUploadBytes: bytesOf(config.media.maxMb),
    programs: openProgramCalls(stage, policy),
    webhooks: {
      hooks: config.webhooks,
      webhooks: openWebhooks(stage, policy),
      defaultAgent: policy.defaultAgent,
    },
    mediaDir,
    feeds: {
      feeds: createSessionFeeds({ ...stage, mediaDir }),
      mainLane: () => ownerLane(stage, policy).key,
    },
    operations: {
      texts: stage.texts,
      policy,
      people: localOwners,
      start: stage.dispatcher.dispatch,
      changed: (laneKey) => stage.feed.publish(laneKey, { kind: 'changed' }),
      redact: stage.redact,
      hooks: stage.hooks,
      keyedWrite,
      render: { trace: renderTrace, record: renderRecord },
      owner: { ...owner, ...questions },
      lanes: { changes: countLaneChanges(stage), leaseMs: config.lanes.leaseMs },
      commands: () => nativeCommands(stage.texts, plugins.commands()),
      agents,
      roster: () => agentRoster(config),
      taskDoor: openTaskDoor(stage, policy),
      ...(stage.reload && { reload: stage.reload }),
    },
  });
  closers.add('http server', server.close);
  const listen = async () => {
    await stage.beforeListen?.();
    const listening = await server.listen();
    await stage.publishAddress(listening.url);
    return listening;
  };
  return { ...server, listen };
}

/** Serves a worker's health and metrics on its own loopback port. Rejects if the port is taken. */
export async function openHealth(stage: StageDeps, host: ChannelHost): Promise<{ readonly url: string }> {
  const { config, closers } = stage;
  const server = createHealthServer({
    ...healthOf(stage, host),
    ...{ log: stage.log, clock: stage.clock },
    port: config.health.port,
    token: () => tokenOf(stage),
  });
  closers.add('health server', server.close);
  await stage.beforeListen?.();
  const { url } = await server.listen();
  await stage.publishAddress(url);
  return { url };
}

/** Creates what reports this process's health. */
export function healthOf(
  stage: StageDeps,
  host: ChannelHost,
  { hasSpace, plugins }: { readonly hasSpace?: () => boolean; readonly plugins?: PluginHost } = {},
) {
  const { store, clock, version, model, meters, failures, redact, redis } = stage;
  return gatewayHealth({
    ...{ store, clock, version, model, meters, failures, redact },
    channels: host.states,
    isRedisReady: redis.connections.isReady,
    ...(hasSpace && { hasSpace }),
    ...(plugins && { pluginProblems: () => pluginProblems(plugins.reports()) }),
  });
}

async function tokenOf({ config, onSecret }: StageDeps): Promise<string> {
  const token = config.token?.reveal() ?? (await accessToken(config.dataDir));
  onSecret?.(token);
  return token;
}

type ChannelParts = {
  readonly host: ChannelHost;
  readonly policy: InboundPolicy;
  readonly server: HttpServer | undefined;
  readonly plugins: PluginHost;
};

/** Connects every configured account. Resolves when the first attempt of each has ended. */
export async function openChannels(
  stage: StageDeps,
  { host, policy, server, plugins }: ChannelParts,
): Promise<void> {
  const { config } = stage;
  const open = async ({ entry, line, accountName, state }: ConfiguredAccount): Promise<void> => {
    const { id, load, localPeer } = entry;
    if (state.kind === 'off') return host.setOff(line, state.reason);
    const dataDir = join(config.dataDir, 'channels', line);
    // A folder that can't be created is a fault of this channel and retried like any other.
    const loadWithFolder = async () => {
      await makeFolder(dataDir);
      return load();
    };
    const timeline =
      localPeer === undefined
        ? {}
        : {
            timeline: createTimeline({ ...stage, mediaDir: mediaFolder(config.dataDir) }, (route) =>
              localLaneKey(policy, { route, peer: localPeer, accountName }),
            ),
          };
    const deps = { dataDir, ...(server && { routes: server.routesFor(line) }), ...timeline };
    const named = accountName === undefined ? {} : { accountName };
    const settings = revealSettings(state.settings);
    await host.run({ id, ...named, load: loadWithFolder, settings, deps });
  };
  const ofPlugins = plugins.channels().map(({ part }) => accountOfPlugin(part));
  await Promise.all([...configuredAccounts(stage.channels, config), ...ofPlugins].map(open));
}

/** A plugin's channel is on whenever the plugin is. */
function accountOfPlugin({ definition, settings }: RegisteredChannel): ConfiguredAccount {
  const { id } = definition;
  const entry = { id, load: async () => definition };
  return {
    entry,
    line: id,
    accountName: undefined,
    state: { kind: 'on', settings: { ...settings, enabled: true } },
  };
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? cause.code : cause;
    throw new ParleyError(
      'internal',
      `${path} can't be created (${reason}). Let Parley's user write there.`,
      {
        cause,
      },
    );
  }
}

/** Lets programs reach agents like the page does, with the authority of the access token's holder, the owner. */
export function openAgentService(stage: StageDeps, policy: InboundPolicy): AgentService {
  const { store, clock, probe, feed, dispatcher } = stage;
  const { dispatch: start, reserve } = dispatcher;
  const { dataDir, media } = stage.config;
  return createAgentService({
    ...{ store, clock, probe, feed, start, reserve },
    ownerLane: (agent) => ownerLane(stage, policy, agent),
    mediaDir: mediaFolder(dataDir),
    reader: wireReader(stage),
    maxFileBytes: bytesOf(media.maxMb),
  });
}

/** Returns the lane of the owner's main conversation with an agent, the default one if none is named. */
function ownerLane({ config, channels }: StageDeps, policy: InboundPolicy, asked?: string): LaneSpec {
  const agent = findAgent(config.agents, asked, policy.defaultAgent);
  const local = channels.find(({ localPeer }) => localPeer !== undefined);
  if (!agent || local?.localPeer === undefined)
    throw new ParleyError('invalid_input', `There is no agent ${asked ?? policy.defaultAgent}.`);
  const { id: channel, localPeer } = local;
  const route = { channel, account: accountId(localPeer), conversation: conversationId(localPeer) };
  // The caller names the agent: no binding chooses another.
  const agentGate = { ...policy, bindings: [], defaultAgent: agentId(agent.id) };
  return {
    key: localLaneKey(agentGate, { route, peer: localPeer }),
    class: 'main',
    agentId: agent.id,
    chatKind: 'dm',
    settings: queueSettingsFor(policy, { channel, conversation: localPeer, kind: 'dm' }),
    newSessionId: newRowId(),
  };
}

/** Lets programs that speak OpenAI's API reach the agents, each in conversations of its own. */
function openProgramCalls(stage: StageDeps, policy: InboundPolicy): ProgramCalls {
  const { config, store, clock, probe, feed, dispatcher } = stage;
  return createProgramCalls({
    ...{ store, clock, probe, feed, start: dispatcher.dispatch, reserve: dispatcher.reserve },
    agents: config.agents,
    defaultAgent: policy.defaultAgent,
    mediaDir: mediaFolder(config.dataDir),
    reader: wireReader(stage),
    laneFor: (agent, caller, conversation) => programLane(policy, { agent, caller, conversation }),
  });
}

/** Lets programs send agents tasks as messages, each in a lane of its own. */
function openTaskDoor(stage: StageDeps, policy: InboundPolicy): TaskDoor {
  const { config, store, clock, probe, feed, dispatcher } = stage;
  return createTaskDoor({
    ...{ store, clock, probe, feed, start: dispatcher.dispatch, reserve: dispatcher.reserve },
    agents: config.agents,
    defaultAgent: policy.defaultAgent,
    laneFor: (agent, taskId) => programLane(policy, { agent, caller: 'tasks', conversation: taskId }),
  });
}

/** Lets other systems report something to agents, whose answers go to the owner's chat. */
function openWebhooks(stage: StageDeps, policy: InboundPolicy): Webhooks {
  const { config, channels, store, clock, probe, dispatcher } = stage;
  return createWebhooks({
    ...{ store, clock, probe, start: dispatcher.dispatch, reserve: dispatcher.reserve },
    owners: () => ({ owners: config.owners, channels: channels.map(({ id }) => id) }),
    laneFor: (agent, hook) => programLane(policy, { agent, caller: 'webhook', conversation: hook }),
  });
}

/** Describes the lane of a program's conversation with an agent. */
function programLane(
  policy: InboundPolicy,
  of: { readonly agent: string; readonly caller: string; readonly conversation: string },
): LaneSpec {
  const { agent, caller, conversation } = of;
  return {
    key: programLaneKey(agent, caller, conversation),
    class: 'main',
    agentId: agent,
    chatKind: 'dm',
    settings: queueSettingsFor(policy, { channel: programAccount, conversation, kind: 'dm' }),
    newSessionId: newRowId(),
  };
}
