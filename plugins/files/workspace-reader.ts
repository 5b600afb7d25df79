import type { DiskCalls } from '#contracts/disk-calls.ts';
import type { WorkspaceReader } from '#contracts/workspace-reader.ts';
import type { FilesConfig } from './config.ts';
import { openWorkspace } from './workspace-files.ts';

/** Lets other tools read files the way the `read` tool does, but with any content and their own size limit. */
export function createWorkspaceReader(config: FilesConfig, disks: DiskCalls): WorkspaceReader {
  return {
    authority: config.readAuthority,
    read: async (workspace, path, options) => {
      await using files = await openWorkspace(workspace, disks);
      return (await files.read(path, { ...options, advice: 'Use a smaller file.' })).bytes;
    },
  };
}
