/**
 * Reads the tables of broken variants, `test/mutants/<folder>.txt`: one for each folder of tests that notice them.
 *
 *     test/store/lanes/lanes.test.ts                                    the file of the test
 *       stores a redelivered event once [postgres]                      part of its title; it only runs on PostgreSQL
 *         no unique event key [sample] | acceptOnce | omit if (before)  what is broken, where, and how
 *           | storeEvent | 'ignore' → 'fail'                            another edit of the same variant
 *
 * What a variant breaks is what the test's title promises. A sample runs in `npm test`, in turns; the others run in
 * `npm run test:long`.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

export type Mutant = {
  readonly name: string;
  readonly edits: readonly Edit[];
  readonly test: { readonly file: string; readonly name: string };
  readonly isSample: boolean;
  /** The test that notices it only runs on PostgreSQL. */
  readonly needsPostgres: boolean;
};

/**
 * A change of one top-level declaration of src, channels or plugins, wherever that is. `omit <start>` leaves out the
 * statement, link of a chain, operand, element or member that starts so; `<find> → <replace>` writes other code.
 * `start` and `find` match exactly once, token by token, so layout, comments and trailing commas don't matter.
 * `$NAME` stands for one identifier, `$$NAME` for any run of tokens with balanced brackets; both mean the same text
 * wherever they are repeated, also in `replace`. Keep both short: what a rename doesn't touch survives it.
 */
export type Edit = { readonly in: string; readonly change: string };

/** Returns all variants, by table and line. Throws for a line that doesn't fit. */
export async function readMutants(folder: string): Promise<readonly Mutant[]> {
  const tables = (await readdir(folder)).filter((name) => name.endsWith('.txt')).sort();
  const texts = await Promise.all(tables.map((table) => readFile(join(folder, table), 'utf8')));
  return texts.flatMap((text, index) => parseTable(text, tables[index] ?? ''));
}

function parseTable(text: string, table: string): readonly Mutant[] {
  const mutants: Mutant[] = [];
  const test = { file: '', name: '', needsPostgres: false };
  for (const [index, line] of text.split('\n').entries()) {
    const depth = line.search(/\S/) / 2;
    if (depth === 0) test.file = line;
    else if (depth === 1) {
      const { words, isMarked } = withoutMark(line, 'postgres');
      Object.assign(test, { name: words, needsPostgres: isMarked });
    } else if (depth >= 2) {
      const [words = '', target, ...change] = line.split(' | ');
      const edit = { in: target?.trim() ?? '', change: change.join(' | ').trim() };
      const last = mutants.at(-1);
      if (edit.in === '' || edit.change === '')
        throw new Error(`${table}:${index + 1}: not "what | where | how"`);
      if (depth === 3 && last) mutants.splice(-1, 1, { ...last, edits: [...last.edits, edit] });
      else {
        const { words: name, isMarked: isSample } = withoutMark(words, 'sample');
        const { needsPostgres, ...found } = test;
        mutants.push({ name, edits: [edit], test: found, isSample, needsPostgres });
      }
    }
  }
  return mutants;
}

function withoutMark(words: string, mark: string) {
  const bare = words.replace(` [${mark}]`, '');
  return { words: bare.trim(), isMarked: bare !== words };
}
