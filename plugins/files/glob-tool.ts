import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import type { FilesConfig } from './config.ts';
import { onOneLine } from './file-problem.ts';
import { openRunFiles } from './inbox.ts';
import { ownTurn, searchFiles } from './search-files.ts';
import { compileGlob } from './search-pattern.ts';

const maxResults = 500;

const inputSchema = z.object({
  pattern: z.string().describe('For example **/*.ts, notes/*.md or *.{json,yaml}.'),
  path: z.string().default('.').describe('The folder to search, relative to the workspace.'),
});

export function createGlobTool(config: FilesConfig, disks: DiskCalls): Tool {
  return defineTool({
    name: 'glob',
    description:
      'Finds files in the workspace by path. * and ? stay within one name, ** crosses folders; a pattern ' +
      'without / matches names in any folder. Paths are relative to the workspace. .git and node_modules are skipped.',
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: config.readAuthority,
    async execute({ pattern, path }, { run, signal }) {
      await ownTurn();
      const matches = compileGlob(pattern);
      await using files = await openRunFiles(run, disks);
      const found: string[] = [];
      const search = searchFiles(files, { path, signal });
      for await (const file of search.files) {
        if (!matches(file.pathBelow)) continue;
        if (found.length === maxResults) {
          search.cut(`only the first ${maxResults} are shown`);
          break;
        }
        found.push(onOneLine(file.path));
      }
      return { text: search.report(found, 'no file matches') };
    },
  });
}
