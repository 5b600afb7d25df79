import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import type { FilesConfig } from './config.ts';
import { fileProblem } from './file-problem.ts';
import { openRunFiles } from './inbox.ts';
import type { WorkspaceFiles } from './workspace-files.ts';

const inputSchema = z.object({
  path: z.string().describe('Relative to the workspace; folders are made as needed.'),
  content: z.string().describe('The complete content of the file.'),
});

export function createWriteTool(config: FilesConfig, disks: DiskCalls): Tool {
  return defineTool({
    name: 'write',
    description:
      'Writes a complete text file in the workspace, replacing any existing one; to change a part, use edit. ' +
      'Refuses executable files and those that other programs run on their own, such as .git, .env and .vscode.',
    inputSchema,
    parallelSafe: false,
    // After a crash, writing the same content again changes nothing; different content isn't overwritten.
    replay: 'safe',
    authority: config.writeAuthority,
    async execute({ path, content }, { run, signal, isRepeat = false }) {
      const bytes = Buffer.from(content);
      if (bytes.length > config.maxFileBytes) {
        throw fileProblem(`The content has ${bytes.length} bytes; the limit is ${config.maxFileBytes}.`);
      }
      await using files = await openRunFiles(run, disks);
      if (isRepeat) await checkUnchanged(files, { path, bytes, maxBytes: config.maxFileBytes, signal });
      const { isNew } = await files.write(path, bytes, { signal });
      return { text: `${isNew ? 'Created' : 'Replaced'} ${path} (${bytes.length} bytes).` };
    },
  });
}

type Repeat = {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
};

/** Throws for a file with different content, which may have been changed since an earlier attempt wrote it. */
async function checkUnchanged(files: WorkspaceFiles, { path, bytes, ...options }: Repeat): Promise<void> {
  const standing = await files.read(path, options).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (standing === undefined || standing.bytes.equals(bytes)) return;
  throw fileProblem(
    `This call was interrupted, and ${path} now contains something else: it may have been written and then changed. Read it before you write it again.`,
  );
}

function isMissing(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
}
