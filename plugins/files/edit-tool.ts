import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import type { FilesConfig } from './config.ts';
import { checkText, fileProblem } from './file-problem.ts';
import { openRunFiles } from './inbox.ts';
import { findLines, findPassage } from './search-files.ts';

/** Longest passage, in UTF-16 units: more than a model writes in one answer. */
const maxPassage = 500_000;

const inputSchema = z.object({
  path: z.string().describe('Relative to the workspace.'),
  oldText: z
    .string()
    .min(1)
    .max(maxPassage)
    .describe('Exactly as in the file, including white space but without line numbers.'),
  newText: z.string().max(maxPassage).describe('The text that replaces it.'),
});

export function createEditTool(config: FilesConfig, disks: DiskCalls): Tool {
  return defineTool({
    name: 'edit',
    description:
      'Replaces one passage of a text file in the workspace. The old text must occur exactly once, so include ' +
      'enough of the text around it.',
    inputSchema,
    parallelSafe: false,
    // A second attempt wouldn't find the old text, or would change a different passage.
    replay: 'never',
    authority: config.writeAuthority,
    async execute({ path, oldText, newText }, { run, signal }) {
      await using files = await openRunFiles(run, disks);
      const { bytes, stamp } = await files.read(path, { maxBytes: config.maxFileBytes, signal });
      checkText(bytes, path);
      const at = await findOnly(bytes, oldText, path);
      const behind = at + Buffer.byteLength(oldText);
      const after = Buffer.concat([bytes.subarray(0, at), Buffer.from(newText), bytes.subarray(behind)]);
      if (after.length > config.maxFileBytes) {
        throw fileProblem(`${path} would have ${after.length} bytes; the limit is ${config.maxFileBytes}.`);
      }
      await files.write(path, after, { signal, replaces: stamp });
      const { count } = await findLines(bytes.subarray(0, at + 1), { from: 1, to: 1 });
      return { text: `Edited ${path} at line ${Math.max(1, count)}.` };
    },
  });
}

/** Returns the byte at which the only occurrence begins. Overlapping occurrences count separately. */
async function findOnly(bytes: Uint8Array, wanted: string, path: string): Promise<number> {
  const { count, first } = await findPassage(bytes, Buffer.from(wanted));
  if (count === 1) return first;
  if (count === 0) throw fileProblem(`The old text doesn't occur in ${path}${await hintFor(bytes, wanted)}.`);
  throw fileProblem(`The old text occurs more than once in ${path}; include more of the text around it.`);
}

async function hintFor(bytes: Uint8Array, wanted: string): Promise<string> {
  const holds = async (text: string) => (await findPassage(bytes, Buffer.from(text))).count > 0;
  if (wanted.includes('\n') && (await holds(wanted.replaceAll('\n', '\r\n')))) {
    return '; its lines end in CR LF';
  }
  const firstLine = wanted.trim().split('\n', 1)[0] ?? '';
  return firstLine !== '' && (await holds(firstLine))
    ? '; its first line does, so compare white space and the lines after it'
    : '';
}
