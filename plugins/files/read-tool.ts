import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import type { FilesConfig } from './config.ts';
import { checkText } from './file-problem.ts';
import { openRunFiles } from './inbox.ts';
import { findLines } from './search-files.ts';

const maxLines = 2000;
/** Stays below the 32 KB at which results are cut, so that the note about missing lines is kept. */
const maxOutputLength = 30_000;
const maxLineLength = 2000;

const inputSchema = z.object({
  path: z.string().describe('Relative to the workspace.'),
  fromLine: z.int().min(1).default(1).describe('First line to read, from 1.'),
  lines: z.int().min(1).max(maxLines).default(maxLines).describe('How many lines to read.'),
});

export function createReadTool(config: FilesConfig, disks: DiskCalls): Tool {
  return defineTool({
    name: 'read',
    description:
      'Reads a text file in the workspace. Each line is shown with its number and a tab, which are not part ' +
      'of the file. Long files are shown in pieces: continue with fromLine. Files that came with this ' +
      "conversation's messages are in inbox/.",
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: config.readAuthority,
    async execute({ path, fromLine, lines }, { run, signal }) {
      await using files = await openRunFiles(run, disks);
      const { bytes } = await files.read(path, { maxBytes: config.maxFileBytes, signal });
      checkText(bytes, path);
      return { text: await showLines(bytes, { fromLine, lines }) };
    },
  });
}

async function showLines(
  bytes: Buffer,
  range: { readonly fromLine: number; readonly lines: number },
): Promise<string> {
  const { fromLine, lines } = range;
  const { start, end, count } = await findLines(bytes, { from: fromLine, to: fromLine + lines - 1 });
  if (count === 0) return '(the file is empty)';
  if (fromLine > count) return `(the file has ${count} lines)`;
  const shown: string[] = [];
  let length = 0;
  for (const line of linesIn(bytes.subarray(start, end))) {
    const numbered = `${String(fromLine + shown.length).padStart(6)}\t${cutLine(line.toString())}`;
    length += Buffer.byteLength(numbered) + 1;
    if (length > maxOutputLength) break;
    shown.push(numbered);
  }
  const next = fromLine + shown.length;
  if (next <= count) shown.push(`(lines ${next} to ${count} follow: read again with fromLine ${next})`);
  return shown.join('\n');
}

/** Yields the lines. A final newline ends the last line and doesn't begin another. */
function* linesIn(bytes: Buffer): Generator<Buffer> {
  let start = 0;
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
    yield bytes.subarray(start, end);
    start = end + 1;
  }
  if (start < bytes.length) yield bytes.subarray(start);
}

function cutLine(line: string): string {
  if (line.length <= maxLineLength) return line;
  return `${line.slice(0, maxLineLength).toWellFormed()} … (${line.length - maxLineLength} more characters in this line)`;
}
