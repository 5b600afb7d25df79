import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import type { FilesConfig } from './config.ts';
import { onOneLine } from './file-problem.ts';
import type { EntryKind } from './folder-walk.ts';
import { openRunFiles } from './inbox.ts';

const maxEntries = 500;

const marks: Readonly<Record<EntryKind, string>> = { file: '', folder: '/', link: '@', other: ' (special)' };

const inputSchema = z.object({
  path: z.string().default('.').describe('A folder, relative to the workspace.'),
});

export function createListTool(config: FilesConfig, disks: DiskCalls): Tool {
  return defineTool({
    name: 'list',
    description:
      'Lists a folder in the workspace by name. Folders end in /, symbolic links (not followed) in @.',
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: config.readAuthority,
    async execute({ path }, { run, signal }) {
      await using files = await openRunFiles(run, disks);
      const { entries, isCut } = await files.list(path, { maxEntries, signal });
      const lines = entries.map(({ name, kind }) => onOneLine(name) + marks[kind]);
      if (isCut) lines.push(`(only ${maxEntries} entries are shown; use glob to find others)`);
      return { text: lines.length === 0 ? '(the folder is empty)' : lines.join('\n') };
    },
  });
}
