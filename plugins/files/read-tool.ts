import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { FilesConfig } from './config.ts';
import { decodeText } from './text-content.ts';
import { openWorkspace } from './workspace-files.ts';

const maxLines = 2000;
/** Stays below the 32 KB at which results are cut, so that the note on what is missing is kept. */
const maxOutputLength = 30_000;
const maxLineLength = 2000;

const inputSchema = z.object({
  path: z.string().describe('Relative to the workspace.'),
  fromLine: z.int().min(1).default(1).describe('First line to read, from 1.'),
  lines: z.int().min(1).max(maxLines).default(maxLines).describe('How many lines to read.'),
});

export function createReadTool(config: FilesConfig): Tool {
  return defineTool({
    name: 'read',
    description:
      'Reads a text file of the workspace. Each line is shown with its number and a tab, which are not part ' +
      'of the file. Long files are shown in pieces: go on with fromLine.',
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: config.readAuthority,
    async execute({ path, fromLine, lines }, { run, signal }) {
      await using files = await openWorkspace(run.workspace);
      const { bytes } = await files.read(path, { maxBytes: config.maxFileBytes, signal });
      return { text: showLines(decodeText(bytes, path), { fromLine, lines }) };
    },
  });
}

function showLines(text: string, range: { readonly fromLine: number; readonly lines: number }): string {
  const all = text.split('\n');
  // A final newline ends the last line; it does not begin another.
  if (all.at(-1) === '') all.pop();
  if (all.length === 0) return '(the file is empty)';
  if (range.fromLine > all.length) return `(the file has ${all.length} lines)`;
  const shown: string[] = [];
  let length = 0;
  for (const line of all.slice(range.fromLine - 1, range.fromLine - 1 + range.lines)) {
    const numbered = `${String(range.fromLine + shown.length).padStart(6)}\t${cutLine(line)}`;
    length += Buffer.byteLength(numbered) + 1;
    if (length > maxOutputLength) break;
    shown.push(numbered);
  }
  const next = range.fromLine + shown.length;
  if (next <= all.length)
    shown.push(`(lines ${next} to ${all.length} follow: read again with fromLine ${next})`);
  return shown.join('\n');
}

function cutLine(line: string): string {
  if (line.length <= maxLineLength) return line;
  return `${line.slice(0, maxLineLength).toWellFormed()} … (${line.length - maxLineLength} more characters in this line)`;
}
