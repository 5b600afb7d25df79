import type { PluginDefinition } from '#contracts/plugin.ts';
import type { Tool } from '#contracts/tool.ts';
import type { DiskCalls, WorkspaceReader } from '#contracts/workspace-reader.ts';
import { type FilesConfig, filesConfigSchema } from './config.ts';
import { findSystemProblem } from './descriptor.ts';
import { createEditTool } from './edit-tool.ts';
import { createGlobTool } from './glob-tool.ts';
import { createGrepTool } from './grep-tool.ts';
import { openRunFiles } from './inbox.ts';
import { createListTool } from './list-tool.ts';
import { createReadTool } from './read-tool.ts';
import { createWorkspaceWriter } from './workspace-writer.ts';
import { createWriteTool } from './write-tool.ts';

const createTools: readonly ((config: FilesConfig, disks: DiskCalls) => Tool)[] = [
  createReadTool,
  createWriteTool,
  createEditTool,
  createListTool,
  createGlobTool,
  createGrepTool,
];

/** Creates the plugin of the file tools; on a system that can't confine them to the workspace, logs that it is off. */
export function createFilesPlugin(os: NodeJS.Platform): PluginDefinition<FilesConfig> {
  return {
    id: 'files',
    configSchema: filesConfigSchema,
    setup({ log, tools, disks, workspaces }, config) {
      const problem = findSystemProblem(os);
      if (problem !== undefined && config.enabled) log.warn({ problem }, 'files.disabled');
      if (problem === undefined && config.enabled) {
        for (const createTool of createTools) {
          const tool = createTool(config, disks);
          tools.register(tool.name, () => tool);
        }
        workspaces.serve(createWorkspaceReader(config, disks), createWorkspaceWriter(disks));
      }
      return () => undefined;
    },
  };
}

export const plugin = createFilesPlugin(process.platform);

/** Lets other tools read files the way the `read` tool does, but with any content and their own size limit. */
function createWorkspaceReader(config: FilesConfig, disks: DiskCalls): WorkspaceReader {
  return {
    authority: config.readAuthority,
    read: async (workspace, path, { receivedFiles, ...options }) => {
      const run = { workspace, ...(receivedFiles && { receivedFiles }) };
      await using files = await openRunFiles(run, disks);
      return (await files.read(path, { ...options, advice: 'Use a smaller file.' })).bytes;
    },
  };
}
