/** The tools of the bundled web plugins, all of them on; nothing calls them. */
import { z } from 'zod';
import { plugin as code } from '../../plugins/code-search/index.ts';
import { plugin as web } from '../../plugins/web/index.ts';
import type { PluginDefinition } from '../../src/contracts/plugin.ts';

export const plugin: PluginDefinition = {
  id: 'web-tools',
  configSchema: z.unknown(),
  setup: (api) => {
    const search = { backend: 'searxng', baseUrl: 'http://127.0.0.1:1' };
    web.setup(api, web.configSchema.parse({ search }));
    return code.setup(api, code.configSchema.parse({}));
  },
};
