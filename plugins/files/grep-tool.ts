import { StringDecoder } from 'node:string_decoder';
import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import type { FilesConfig } from './config.ts';
import type { DiskFile } from './disk.ts';
import { looksBinary, onOneLine } from './file-problem.ts';
import { openRunFiles } from './inbox.ts';
import { createTimeSlice, type FileSearch, ownTurn, searchFiles } from './search-files.ts';
import { compileGlob, compileSearch, maxSearchedLength, type TextMatcher } from './search-pattern.ts';

const maxResults = 200;
const maxShownLength = 300;
const chunkBytes = 65_536;

const inputSchema = z.object({
  pattern: z.string().describe('A regular expression (RE2: no look-around, no back-references).'),
  path: z.string().default('.').describe('A folder or file, relative to the workspace.'),
  glob: z.string().optional().describe('Only files whose path matches, for example *.ts.'),
  ignoreCase: z.boolean().default(false),
});

export function createGrepTool(config: FilesConfig, disks: DiskCalls): Tool {
  return defineTool({
    name: 'grep',
    description:
      'Finds lines in text files of the workspace, shown as path:line: text. Skips binary files, .git and ' +
      `node_modules, and searches only the first ${maxSearchedLength} characters of a line.`,
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: config.readAuthority,
    async execute({ pattern, path, glob, ignoreCase }, { run, signal }) {
      // Compiling a pattern may take 35 ms.
      await ownTurn();
      const matches = compileSearch(pattern, { ignoresCase: ignoreCase });
      const isWanted = glob === undefined ? () => true : compileGlob(glob);
      await using files = await openRunFiles(run, disks);
      const search = searchFiles(files, { path, signal });
      const found: string[] = [];
      for await (const file of search.files) {
        if (!isWanted(file.pathBelow)) continue;
        // Removed or unreadable since it was listed; the other files are still worth searching.
        const handle = await file.open().catch(() => undefined);
        if (handle === undefined) {
          search.cut('some files could not be read');
          continue;
        }
        await using _ = handle;
        await grepFile({ handle, path: onOneLine(file.path), matches, search, found, signal });
        if (found.length >= maxResults) {
          search.cut(`only the first ${maxResults} matches are shown`);
          break;
        }
      }
      return { text: search.report(found, 'no line matches') };
    },
  });
}

type GrepTask = {
  readonly handle: DiskFile;
  readonly path: string;
  readonly matches: TextMatcher;
  readonly search: FileSearch;
  readonly found: string[];
  readonly signal: AbortSignal;
};

async function grepFile({ handle, path, matches, search, found, signal }: GrepTask): Promise<void> {
  const rest = createTimeSlice();
  let number = 0;
  for await (const line of linesOf(handle, { search, signal })) {
    number++;
    await rest();
    if (search.isOverdue() || found.length >= maxResults) return;
    const text = line.endsWith('\r') ? line.slice(0, -1) : line;
    if (matches(text)) found.push(`${path}:${number}: ${shorten(onOneLine(text))}`);
  }
}

/** Yields the lines of a text file, none for a binary one. Only the searched part of each line is kept. */
async function* linesOf(
  handle: DiskFile,
  { search, signal }: Pick<GrepTask, 'search' | 'signal'>,
): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  const chunk = Buffer.allocUnsafe(chunkBytes);
  let line = '';
  for (let position = 0; ; ) {
    signal.throwIfAborted();
    // Checked here too, because a file may be a single line, and larger than any disk.
    if (search.isOverdue()) return;
    const bytesRead = await handle.read(chunk, 0, chunkBytes, position);
    if (bytesRead === 0) break;
    const bytes = chunk.subarray(0, bytesRead);
    if (position === 0 && looksBinary(bytes)) return;
    position += bytesRead;
    const [first = '', ...others] = decoder.write(bytes).split('\n');
    line = (line + first).slice(0, maxSearchedLength);
    for (const next of others) {
      yield line;
      line = next.slice(0, maxSearchedLength);
    }
  }
  line += decoder.end();
  if (line !== '') yield line;
}

function shorten(line: string): string {
  return line.length <= maxShownLength ? line : `${line.slice(0, maxShownLength).toWellFormed()} …`;
}
