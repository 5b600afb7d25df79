/** The bundled tools that read pages and run commands. PAGE_HOST is the one server of this machine that may be read. */
import { z } from 'zod';
import { plugin as shell } from '../../plugins/shell/index.ts';
import { plugin as web } from '../../plugins/web/index.ts';
import type { PluginDefinition } from '../../src/contracts/plugin.ts';

export const plugin: PluginDefinition = {
  id: 'page-tools',
  configSchema: z.unknown(),
  setup: async (api) => {
    await web.setup(api, web.configSchema.parse({ allowHosts: [process.env.PAGE_HOST ?? ''] }));
    return shell.setup(api, shell.configSchema.parse({ enabled: true }));
  },
};
