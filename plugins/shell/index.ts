import type { PluginDefinition } from '#contracts/plugin.ts';
import { createBackgroundCommands } from './background.ts';
import { createBashTool } from './bash-tool.ts';
import { checkShell } from './check.ts';
import { type ShellConfig, shellConfigSchema } from './config.ts';
import { createJobsTool } from './jobs-tool.ts';
import { createShell } from './shell.ts';

/** Creates the plugin of the shell tools. `bwrap` is bubblewrap's path, or its name to be looked up in PATH. */
export function createShellPlugin(
  os: NodeJS.Platform = process.platform,
  bwrap = 'bwrap',
): PluginDefinition<ShellConfig> {
  return {
    id: 'shell',
    configSchema: shellConfigSchema,
    check: ({ disks }, config) => checkShell({ config, disks, bwrap }, os),
    setup({ tools, disks, skills }, config) {
      if (!config.enabled) return () => undefined;
      const start = createShell({ config, disks, bwrap });
      const background = createBackgroundCommands(start, config);
      const jobs = createJobsTool(config, background);
      tools.register('bash', (run) => createBashTool({ config, start, background, skills }, run));
      tools.register(jobs.name, () => jobs);
      return background.close;
    },
  };
}

export const plugin = createShellPlugin();
