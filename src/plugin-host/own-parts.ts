/** Makes what a plugin has registered run as the plugin's, and what it asks of Parley as Parley's. */
import type { ChannelAdapter, ChannelDefinition } from '#contracts/channel.ts';
import type { PluginApi } from '#contracts/plugin.ts';
import type { PluginProviderFactory } from '#contracts/plugin-parts.ts';
import { type PluginCode, withMethods } from './plugin-code.ts';

type Services = Pick<PluginApi, 'store' | 'agent' | 'enqueue' | 'settle'>;

/** Nothing that Parley begins for a plugin, such as a run, belongs to the plugin. */
export function ownServices({ store, agent, enqueue, settle }: Services, { leave }: PluginCode): Services {
  return {
    store: withMethods(store, leave),
    agent: withMethods(agent, leave),
    enqueue: (item) => leave(() => enqueue(item)),
    settle: (call, result) => leave(() => settle(call, result)),
  };
}

export function ownProvider(create: PluginProviderFactory, code: PluginCode): PluginProviderFactory {
  return (model) => {
    const provider = code.run(() => create(model));
    return withMethods(provider, code.run, {
      stream: (request, signal) => code.stream(() => provider.stream(request, signal)),
    });
  };
}

const abilities = ['typing', 'preview', 'media', 'commands', 'login', 'lookup', 'checks'] as const;

export function ownChannel(definition: ChannelDefinition, code: PluginCode): ChannelDefinition {
  return {
    ...definition,
    create: (config, deps) => {
      const fetch: typeof deps.fetch = (...request) => code.leave(() => deps.fetch(...request));
      const adapter = code.run(() => definition.create(config, { ...deps, fetch }));
      const present = abilities.flatMap((name) => {
        const ability: object | undefined = adapter[name];
        return ability === undefined ? [] : [[name, withMethods(ability, code.run)]];
      });
      return withMethods<ChannelAdapter>(adapter, code.run, {
        ...Object.fromEntries(present),
        start: (intake) => code.run(async () => adapter.start(withMethods(intake, code.leave))),
      });
    },
  };
}
