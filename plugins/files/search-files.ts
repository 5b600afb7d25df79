/** Shared by glob and grep: which files they examine, when they stop, and how they report it. */
import { setImmediate } from 'node:timers/promises';
import type { WalkedFile } from './folder-walk.ts';
import type { WorkspaceFiles } from './workspace-files.ts';

const maxEntries = 50_000;
const maxSearchMs = 20_000;
/** Below the 32 KB at which results are cut, so that the notes at the end are kept. */
const maxOutputBytes = 30_000;
const skippedFolders: ReadonlySet<string> = new Set(['.git', 'node_modules']);

export type FileSearch = {
  readonly files: AsyncGenerator<WalkedFile>;
  /** Says whether the time is up, which the report then mentions; also asked during long work on one file. */
  isOverdue(): boolean;
  /** Notes why the result is incomplete. */
  cut(note: string): void;
  /** Returns the lines, or `nothing`, followed by the notes. */
  report(lines: readonly string[], nothing: string): string;
};

export function searchFiles(
  workspace: WorkspaceFiles,
  { path, signal }: { readonly path: string; readonly signal: AbortSignal },
): FileSearch {
  const notes = new Set<string>();
  const deadline = performance.now() + maxSearchMs;
  const cut = (note: string) => void notes.add(note);
  const isOverdue = () => {
    if (performance.now() <= deadline) return false;
    cut(`the search ended after ${maxSearchMs / 1000} s; search a smaller folder`);
    return true;
  };
  const walked = workspace.walk(path, {
    maxEntries,
    skipsFolder: (name) => skippedFolders.has(name),
    onCut: () => cut(`the search ended after ${maxEntries} entries; search a smaller folder`),
    onUnread: () => cut('some folders could not be read'),
    signal,
  });
  async function* files(): AsyncGenerator<WalkedFile> {
    const rest = createTimeSlice();
    for await (const file of walked) {
      if (isOverdue()) return;
      await rest();
      yield file;
    }
  }
  return { files: files(), isOverdue, cut, report: (lines, nothing) => report(lines, { nothing, notes }) };
}

/** The queue of searches waiting for a turn of the event loop. */
const turns: { last: Promise<void> } = { last: Promise.resolve() };

/**
 * Resolves in a turn of the event loop that no other search uses: a model may start a hundred searches at once, and
 * together they would block the loop a hundred times as long.
 */
export async function ownTurn(): Promise<void> {
  turns.last = turns.last.then(() => setImmediate());
  await turns.last;
}

/** Creates a function that yields to the event loop, by `ownTurn`, once 5 ms have passed since it last did. */
export function createTimeSlice(): () => Promise<void> {
  let since = performance.now();
  return async () => {
    if (performance.now() - since < 5) return;
    await ownTurn();
    since = performance.now();
  };
}

function report(
  lines: readonly string[],
  { nothing, notes }: { readonly nothing: string; readonly notes: Set<string> },
): string {
  const shown: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > maxOutputBytes) {
      notes.add(`${lines.length - shown.length} more results don't fit; narrow the search`);
      break;
    }
    shown.push(line);
  }
  if (shown.length === 0) shown.push(`(${nothing})`);
  for (const note of notes) shown.push(`(${note})`);
  return shown.join('\n');
}

// Finds a passage in a file in linear time, whatever they contain, and in slices of a few milliseconds.

/** How often the passage occurs, counted up to 2 and including overlaps, and where it first begins. */
type Occurrences = { readonly count: 0 | 1 | 2; readonly first: number };

const sliceBytes = 65_536;

/** Searches by Knuth, Morris and Pratt: the engine's search would reread the passage at each partial match. */
export async function findPassage(bytes: Uint8Array, passage: Uint8Array): Promise<Occurrences> {
  const rest = createTimeSlice();
  const borders = bordersOf(passage);
  let matched = 0;
  let first = -1;
  for (let at = 0; at < bytes.length; at += 1) {
    if (at % sliceBytes === 0) await rest();
    const byte = bytes[at];
    while (matched > 0 && byte !== passage[matched]) matched = borders[matched - 1] ?? 0;
    if (byte === passage[matched]) matched += 1;
    if (matched < passage.length) continue;
    if (first !== -1) return { count: 2, first };
    first = at + 1 - passage.length;
    matched = borders[matched - 1] ?? 0;
  }
  return first === -1 ? { count: 0, first } : { count: 1, first };
}

/** Returns, for each prefix of the passage, the length of its longest proper prefix that is also its suffix. */
function bordersOf(passage: Uint8Array): Int32Array {
  const borders = new Int32Array(passage.length);
  let border = 0;
  for (let at = 1; at < passage.length; at += 1) {
    while (border > 0 && passage[at] !== passage[border]) border = borders[border - 1] ?? 0;
    if (passage[at] === passage[border]) border += 1;
    borders[at] = border;
  }
  return borders;
}

/** Returns where the wanted lines begin and end, and the number of lines. A final newline ends the last line. */
export async function findLines(
  bytes: Uint8Array,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<{ readonly start: number; readonly end: number; readonly count: number }> {
  const rest = createTimeSlice();
  let line = 1;
  let start = from === 1 ? 0 : bytes.length;
  let end = bytes.length;
  for (let at = 0; at < bytes.length; at += 1) {
    if (at % sliceBytes === 0) await rest();
    if (bytes[at] !== newline) continue;
    if (line === to) end = at;
    line += 1;
    if (line === from) start = at + 1;
  }
  const endsWithNewline = bytes.at(-1) === newline;
  return { start, end, count: bytes.length === 0 || endsWithNewline ? line - 1 : line };
}

const newline = 10;
