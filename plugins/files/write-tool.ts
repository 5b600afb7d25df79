import { z } from 'zod';
import type { DiskCalls } from '#contracts/disk-calls.ts';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { FilesConfig } from './config.ts';
import { fileProblem } from './file-problem.ts';
import { openWorkspace, type WorkspaceFiles } from './workspace-files.ts';

const inputSchema = z.object({
  path: z.string().describe('Relative to the workspace; folders are made as needed.'),
  content: z.string().describe('The whole file.'),
});

export function createWriteTool(config: FilesConfig, disks: DiskCalls): Tool {
  return defineTool({
    name: 'write',
    description:
      'Writes a text file of the workspace, whole. Replaces what was there; to change a part, use edit. ' +
      'Not written: executable files, and what other programs run by themselves, such as .git, .env and .vscode.',
    inputSchema,
    parallelSafe: false,
    // Where the same content is, writing it again after a crash changes nothing; over other content it isn't repeated.
    replay: 'safe',
    authority: config.writeAuthority,
    async execute({ path, content }, { run, signal, isRepeat = false }) {
      const bytes = Buffer.from(content);
      if (bytes.length > config.maxFileBytes) {
        throw fileProblem(
          `The content has ${bytes.length} bytes; at most ${config.maxFileBytes} are written.`,
        );
      }
      await using files = await openWorkspace(run.workspace, disks);
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

/** Throws for a file with other content: somebody may have changed it since an earlier attempt wrote it. */
async function checkUnchanged(files: WorkspaceFiles, { path, bytes, ...options }: Repeat): Promise<void> {
  const standing = await files.read(path, options).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (standing === undefined || standing.bytes.equals(bytes)) return;
  throw fileProblem(
    `This call was interrupted, and ${path} holds something else now: it may have been written and then changed. Read it before you write it again.`,
  );
}

function isMissing(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
}
