/** Gives plugins what they may use of Parley: their values, and agents. */
import type { PluginApi } from '#contracts/plugin.ts';
import type { PluginItem, PluginMessage } from '#contracts/plugin-parts.ts';
import type { PluginStore } from '#contracts/plugin-store.ts';
import type { InboundPolicy } from '../inbound/inbound-policy.ts';
import { createPluginHost, type PluginHost } from '../plugin-host/plugin-host.ts';
import { createSettleCall } from '../runs/park.ts';
import type { AgentService } from '../service/agent-service.ts';
import { createSkillReader } from '../skills/skills.ts';
import { commitPluginData, listPluginValues, pluginOps, readPluginValue } from '../store/rows/plugin-data.ts';
import { openAgentService } from './gateway-role.ts';
import type { StageDeps } from './stage-deps.ts';

/** The plugins, once there are any: the models come first, and find those of plugins here. */
export type FoundPlugins = { plugins?: PluginHost };

/** Creates the plugin host of this process, without plugins. Their commands are part of the policy from then on. */
export function wirePlugins(
  stage: StageDeps,
  policy: InboundPolicy,
  found: FoundPlugins,
): { readonly plugins: PluginHost; readonly agents: AgentService } {
  const { config, store, clock, log, probe, closers, dispatcher, hooks } = stage;
  const settle = createSettleCall({ store, clock, log, probe, start: dispatcher.dispatch, hooks });
  const agents = openAgentService(stage, policy);
  const services = (plugin: string) => servicesOf(plugin, stage, agents);
  const plugins = createPluginHost({
    ...{ log, settle, hooks, services },
    skills: createSkillReader(config),
    now: clock.now,
  });
  found.plugins = plugins;
  closers.add('plugins', plugins.close);
  const { commands: list, noteFault } = plugins;
  Object.assign(policy, { pluginCommands: { list, noteFault } } satisfies Partial<InboundPolicy>);
  return { plugins, agents };
}

function servicesOf(
  plugin: string,
  { store }: Pick<StageDeps, 'store'>,
  agents: AgentService,
): Pick<PluginApi, 'store' | 'agent' | 'enqueue'> {
  const keyed = (key: string) => `plugin:${plugin}:${key}`;
  const own = ({ key, ...input }: PluginMessage) => ({
    ...input,
    ...(key !== undefined && { key: keyed(key) }),
  });
  return {
    store: storeOf(plugin, store),
    agent: {
      send: async (input) => agents.send(own(input)),
      run: (input, signal) => agents.run(own(input), signal),
      summarize: agents.summarize,
      wait: async (runId, timeoutMs, signal) => {
        const result = await agents.wait(runId, timeoutMs, signal);
        return { kind: result.kind, ...('text' in result && { text: result.text }) };
      },
      steer: (session, text) => agents.steer(session, text),
      cancel: agents.cancel,
      isSessionBusy: agents.isSessionBusy,
      isBusy: agents.isBusy,
      isStreaming: agents.isStreaming,
      events: agents.events,
    },
    enqueue: ({ key, text, ...place }: PluginItem) =>
      agents.send({ ...place, message: text, key: keyed(key) }),
  };
}

const defaultListed = 100;
const maxListed = 1_000;

function storeOf(plugin: string, store: StageDeps['store']): PluginStore {
  return {
    get: (key) => store.read(readPluginValue, { plugin, key: String(key) }),
    list: (prefix, { after = '', limit = defaultListed } = {}) =>
      store.read(listPluginValues, { plugin, prefix, after, limit: Math.min(maxListed, Math.max(1, limit)) }),
    commit: async (ops) => store.write(commitPluginData, { plugin, ops: pluginOps(ops) }),
  };
}
