import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { FilesConfig } from './config.ts';
import { fileProblem } from './file-problem.ts';
import { openWorkspace } from './workspace-files.ts';

const inputSchema = z.object({
  path: z.string().describe('Relative to the workspace; folders are made as needed.'),
  content: z.string().describe('The whole file.'),
});

export function createWriteTool(config: FilesConfig): Tool {
  return defineTool({
    name: 'write',
    description:
      'Writes a text file of the workspace, whole. Replaces what was there; to change a part, use edit. ' +
      'Not written: executable files, and what other programs run by themselves, such as .git, .env and .vscode.',
    inputSchema,
    parallelSafe: false,
    // The same content in the same place: writing it again after a crash changes nothing.
    replay: 'safe',
    authority: config.writeAuthority,
    async execute({ path, content }, { run, signal }) {
      const bytes = Buffer.from(content);
      if (bytes.length > config.maxFileBytes) {
        throw fileProblem(
          `The content has ${bytes.length} bytes; at most ${config.maxFileBytes} are written.`,
        );
      }
      await using files = await openWorkspace(run.workspace);
      const { isNew } = await files.write(path, bytes, { signal });
      return { text: `${isNew ? 'Created' : 'Replaced'} ${path} (${bytes.length} bytes).` };
    },
  });
}
