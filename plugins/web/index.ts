import type { PluginDefinition } from '#contracts/plugin.ts';
import { type WebConfig, webConfigSchema } from './config.ts';
import type { Network } from './fetch-page.ts';
import { createFetchTool } from './fetch-tool.ts';
import { checkSearch } from './search-service.ts';
import { createSearchTool } from './search-tool.ts';

/** Creates the plugin of the web tools. `network` replaces parts of the network for tests. */
export function createWebPlugin(network: Network = {}): PluginDefinition<WebConfig> {
  return {
    id: 'web',
    configSchema: webConfigSchema,
    setup({ tools }, config) {
      if (config.enabled) {
        for (const tool of [createFetchTool(config, network), ...createSearchTool(config)])
          tools.register(tool.name, () => tool);
      }
      return () => undefined;
    },
    check: async (_api, config) => (config.enabled ? checkSearch(config) : undefined),
  };
}

export const plugin = createWebPlugin();
