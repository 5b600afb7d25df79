import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { API } from 'typescript/unstable/sync';
import { expect, it } from 'vitest';
import { copyWorkTree } from '../mutants/work-tree.ts';

const page = readFileSync('docs/new-command.md', 'utf8');

it('explains a new command whose code compiles and passes its test when typed along', {
  timeout: 600_000,
}, async () => {
  await using tree = await copyWorkTree({ withPostgres: false });
  cpSync('docs', join(tree.folder, 'docs'), { recursive: true });
  const changed = typeAlong(page, tree.folder);
  expect(changed).toHaveLength(9);
  const files = changed.filter((path) => path.endsWith('.ts'));
  expect(mistakesIn(files, tree.folder)).toEqual([]);
  const verdict = await tree.test({
    files: [
      ...files.filter((path) => path.endsWith('.test.ts')),
      'test/inbound/commands.test.ts',
      'test/inbound/pair-command.test.ts',
    ],
    names: [''],
  });
  expect(verdict, verdict.output).toMatchObject({ failed: 0 });
  expect(verdict.passed).toBeGreaterThan(100);
});

/**
 * Returns what the type checker says about these files and all that import them, directly or not. What they import is
 * as it was, and checking it again would take twice as long.
 */
function mistakesIn(changed: readonly string[], folder: string): readonly string[] {
  const config = join(folder, 'page.json');
  writeFileSync(config, JSON.stringify({ extends: './tsconfig.json', files: changed, include: [] }));
  const api = new API({ cwd: folder });
  try {
    const [project] = api.updateSnapshot({ openProject: config }).getProjects();
    if (project === undefined) throw new Error('the project has no configuration');
    const { program } = project;
    const own = program.getSourceFileNames().filter((name) => name.startsWith(folder));
    const texts = new Map(own.map((name) => [name, readFileSync(name, 'utf8')]));
    const files = new Set(changed.map((path) => join(folder, path)));
    // The last part of an import's path is enough: a file of the same name elsewhere only makes it check more.
    for (const file of files)
      for (const [name, text] of texts) if (text.includes(`/${basename(file)}'`)) files.add(name);
    const found = [...files].flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]);
    return [...program.getProgramDiagnostics(), ...found].map(({ fileName, text }) => `${fileName}: ${text}`);
  } finally {
    api.close();
  }
}

/** Makes the page's new files and changes in a folder, and returns the paths of the files. */
function typeAlong(text: string, folder: string): readonly string[] {
  const blocks = text.matchAll(/`([\w./-]+)`(?:, a new file)?:\n\n```(ts|diff)\n([\s\S]*?)^```$/gm);
  const paths = [...blocks].map(([, path = '', language, code = '']) => {
    const file = join(folder, path);
    if (language === 'ts') writeFileSync(file, code);
    else writeFileSync(file, change(readFileSync(file, 'utf8'), code, path));
    return path;
  });
  return [...new Set(paths)];
}

/** Applies a change that shows its place by the lines around it, which must be there exactly once. */
function change(text: string, diff: string, path: string): string {
  const lines = diff.trimEnd().split('\n');
  const linesOf = (omitted: string) =>
    lines.flatMap((line) => (line.startsWith(omitted) ? [] : [`${line.slice(1)}\n`])).join('');
  const [before, after] = [linesOf('+'), linesOf('-')];
  if (`\n${text}`.split(`\n${before}`).length !== 2)
    throw new Error(`${path}: not exactly one place for\n${diff}`);
  return text.replace(before, () => after);
}
