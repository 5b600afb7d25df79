import type { PluginDefinition } from '#contracts/plugin.ts';
import { type CodeSearchConfig, codeSearchConfigSchema } from './config.ts';
import { createCodeSearchTool } from './search-tool.ts';

export const plugin: PluginDefinition<CodeSearchConfig> = {
  id: 'code_search',
  configSchema: codeSearchConfigSchema,
  setup({ tools }, config) {
    const tool = createCodeSearchTool(config);
    if (config.enabled) tools.register(tool.name, () => tool);
    return () => undefined;
  },
};
