/** Finds a passage in a file in linear time, whatever they contain, and in slices of a few milliseconds. */
import { createTimeSlice } from './search-files.ts';

/** How often the passage occurs, counted up to 2 and including overlaps, and where it first begins. */
export type Occurrences = { readonly count: 0 | 1 | 2; readonly first: number };

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
