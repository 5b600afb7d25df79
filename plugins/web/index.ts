import type { PluginDefinition } from '#contracts/plugin.ts';
import { type WebConfig, webConfigSchema } from './config.ts';
import type { Network } from './fetch-page.ts';
import { createFetchTool } from './fetch-tool.ts';

/** Creates the plugin of the web tools. `network` replaces parts of the network for tests. */
export function createWebPlugin(network: Network = {}): PluginDefinition<WebConfig> {
  return {
    id: 'web',
    configSchema: webConfigSchema,
    setup({ tools }, config) {
      if (config.enabled) {
        const fetchTool = createFetchTool(config, network);
        tools.register(fetchTool.name, () => fetchTool);
      }
      return () => undefined;
    },
  };
}

export const plugin = createWebPlugin();
