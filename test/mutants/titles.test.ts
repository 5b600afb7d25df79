import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync, Visitor } from 'rolldown/utils';
import { expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { readMutants } from './mutants.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const mutants = await readMutants(import.meta.dirname);

it('finds an existing test for each broken variant', async () => {
  const written = await readWrittenTitles(mutants.map(({ test }) => test.file));
  const unwritten = mutants.filter(({ test }) => !has(written, test)).map(({ test }) => test.file);
  const loaded = await loadTitles(unwritten);
  const missing = (named: readonly Named[]) => [
    ...new Set(
      named.flatMap((test) =>
        has(written, test) || has(loaded, test) ? [] : [`${test.file} has no test "${test.name}"`],
      ),
    ),
  ];
  expect(missing(mutants.map(({ test }) => test))).toEqual([]);
  const [{ test: known } = { test: { file: '', name: '' } }] = mutants;
  const broken = [
    { ...known, name: `${known.name}, renamed` },
    { ...known, file: 'test/gone.test.ts' },
  ];
  expect(missing(broken)).toEqual(broken.map(({ file, name }) => `${file} has no test "${name}"`));
});

type Named = { readonly file: string; readonly name: string };
/** By file. */
type Titles = ReadonlyMap<string, readonly string[]>;

function has(titles: Titles, { file, name }: Named): boolean {
  return titles.get(file)?.some((title) => title.includes(name)) ?? false;
}

/** Reads the titles that are written out in the files: most are, and loading all the files takes seconds. */
async function readWrittenTitles(files: readonly string[]): Promise<Titles> {
  const read = async (file: string) =>
    [file, findWrittenTitles(file, await readFile(join(root, file), 'utf8'))] as const;
  return new Map(await Promise.all([...new Set(files)].map(read)));
}

function findWrittenTitles(file: string, text: string): readonly string[] {
  const titles: string[] = [];
  new Visitor({
    CallExpression({ start, callee, arguments: [title] }) {
      const isTest = /^(it|test)\b(?!\.(skip|todo)\b)/.test(text.slice(start, callee.end));
      if (isTest && title?.type === 'Literal' && typeof title.value === 'string') titles.push(title.value);
    },
  }).visit(parseSync(file, text).program);
  return titles;
}

/** Lets vitest load the files without running their tests: some titles are made from tables. */
async function loadTitles(files: readonly string[]): Promise<Titles> {
  const list = join(aFolder(), 'titles.json');
  // One process, because each of several would load Parley anew.
  const args = ['list', '--no-static-parse', '--maxWorkers=1', `--json=${list}`, ...new Set(files)];
  const env = {
    PATH: process.env.PATH,
    CI: '1',
    // It lists no test that would be skipped, so tests of a long run and of PostgreSQL must seem wanted.
    PARLEY_LONG: '1',
    PARLEY_TEST_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
  };
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const output = await new Promise<string>((resolve) => {
    // Its exit code says that there is no such database, which nothing but the end of the list needs.
    execFile(process.execPath, [vitest, ...args], { cwd: root, env }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
  const text = await readFile(list, 'utf8').catch(() => {
    throw new Error(`vitest lists no tests:\n${output}`);
  });
  const tests = JSON.parse(text) as readonly Named[];
  const byFile = Map.groupBy(tests, ({ file }) => relative(root, file));
  return new Map([...byFile].map(([file, of]) => [file, of.map(({ name }) => name.replaceAll(' > ', ' '))]));
}
