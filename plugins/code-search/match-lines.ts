/** Turns the matches of Sourcegraph's stream into lines of text. One that has another shape costs itself. */
import { z } from 'zod';

const word = z.string();
const place = { repository: word, path: word };
const lineMatch = z.object({
  line: word,
  /** From 0. */
  lineNumber: z.int(),
  offsetAndLengths: z.array(z.array(z.number())).catch([]),
});
const symbol = z.object({
  name: word,
  kind: word.catch(''),
  containerName: word.catch(''),
  /** From 1. */
  line: z.int(),
});
// Long lists are read only as far as they are shown.
const list = z.array(z.unknown()).catch([]);

const match = z.discriminatedUnion('type', [
  z.object({ type: z.literal('content'), ...place, lineMatches: list }),
  z.object({ type: z.literal('path'), ...place }),
  z.object({ type: z.literal('symbol'), ...place, symbols: list }),
  z.object({ type: z.literal('repo'), repository: word, description: word.catch('') }),
  z.object({ type: z.literal('commit'), repository: word, oid: word, message: word.catch('') }),
]);

/** At most this many matches of an event are looked at, and this many lines of a match. */
const maxLooked = 500;

/** Yields `repository path:line: text` for each line that an event's matches name. */
export function* linesOf(matches: unknown): Generator<string> {
  if (!Array.isArray(matches)) return;
  for (const each of matches.slice(0, maxLooked)) {
    const { data } = match.safeParse(each);
    if (data !== undefined) for (const line of linesOfMatch(data)) yield line;
  }
}

function linesOfMatch(found: z.output<typeof match>): readonly string[] {
  switch (found.type) {
    case 'content':
      return read(lineMatch, found.lineMatches).map(
        ({ line, lineNumber, offsetAndLengths: [[offset = 0] = []] }) =>
          `${placeOf(found)}:${lineNumber + 1}: ${excerpt(line, offset)}`,
      );
    case 'symbol':
      return read(symbol, found.symbols).map(({ line, kind, name, containerName }) =>
        [`${placeOf(found)}:${line}:`, onOneLine(kind), onOneLine(containerName), onOneLine(name)]
          .filter((each) => each !== '')
          .join(' '),
      );
    case 'path':
      return [placeOf(found)];
    case 'repo':
      return [`${onOneLine(found.repository)}: ${onOneLine(found.description)}`];
    case 'commit':
      return [`${onOneLine(found.repository)} ${onOneLine(found.oid)}: ${onOneLine(found.message)}`];
    default:
      return found satisfies never;
  }
}

function placeOf({ repository, path }: { readonly repository: string; readonly path: string }): string {
  return `${onOneLine(repository)} ${onOneLine(path)}`;
}

function read<T>(schema: z.ZodType<T>, entries: readonly unknown[]): readonly T[] {
  return entries.slice(0, maxLooked).flatMap((each) => schema.safeParse(each).data ?? []);
}

const maxExcerpt = 300;
/** How much of a long line is shown before the match. */
const shownBefore = 100;

function excerpt(line: string, offset: number): string {
  const from = line.length <= maxExcerpt ? 0 : Math.max(0, offset - shownBefore);
  return `${from > 0 ? '…' : ''}${onOneLine(line.slice(from))}`;
}

/** Returns the text as one line of limited length; names and text come from strangers. */
export function onOneLine(text: string): string {
  const flat = text
    .slice(0, maxExcerpt * 4)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return flat.length <= maxExcerpt ? flat : `${flat.slice(0, maxExcerpt - 1).toWellFormed()}…`;
}
