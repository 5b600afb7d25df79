import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { FilesConfig } from './config.ts';
import { fileProblem } from './file-problem.ts';
import { decodeText } from './text-content.ts';
import { openWorkspace } from './workspace-files.ts';

const inputSchema = z.object({
  path: z.string().describe('Relative to the workspace.'),
  oldText: z.string().min(1).describe('Exactly as in the file, white space included, without line numbers.'),
  newText: z.string().describe('What stands there afterwards.'),
});

export function createEditTool(config: FilesConfig): Tool {
  return defineTool({
    name: 'edit',
    description:
      'Replaces one passage of a text file of the workspace. The old text must occur exactly once: take ' +
      'enough of what surrounds it.',
    inputSchema,
    parallelSafe: false,
    // A second time it would not find the old text, or change another passage.
    replay: 'never',
    authority: config.writeAuthority,
    async execute({ path, oldText, newText }, { run, signal }) {
      await using files = await openWorkspace(run.workspace);
      const { bytes, stamp } = await files.read(path, { maxBytes: config.maxFileBytes, signal });
      const before = decodeText(bytes, path);
      const at = findOnly(before, oldText, path);
      const after = Buffer.from(before.slice(0, at) + newText + before.slice(at + oldText.length));
      if (after.length > config.maxFileBytes) {
        throw fileProblem(
          `${path} would have ${after.length} bytes; at most ${config.maxFileBytes} are written.`,
        );
      }
      await files.write(path, after, { signal, replaces: stamp });
      return { text: `Edited ${path} at line ${before.slice(0, at).split('\n').length}.` };
    },
  });
}

/** Where the only occurrence begins. Overlapping occurrences count as several. */
function findOnly(text: string, wanted: string, path: string): number {
  const at = text.indexOf(wanted);
  if (at < 0) throw fileProblem(`The old text does not occur in ${path}${hintFor(text, wanted)}.`);
  if (text.includes(wanted, at + 1)) {
    throw fileProblem(`The old text occurs more than once in ${path}; include more of what surrounds it.`);
  }
  return at;
}

function hintFor(text: string, wanted: string): string {
  if (text.includes('\r\n') && text.includes(wanted.replaceAll('\n', '\r\n'))) {
    return '; its lines end in CR LF';
  }
  const firstLine = wanted.trim().split('\n', 1)[0] ?? '';
  return firstLine !== '' && text.includes(firstLine)
    ? '; its first line does, so compare white space and the lines after it'
    : '';
}
