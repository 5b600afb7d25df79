import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
  // With all that these files import, which is most of src.
  const files = changed.filter((path) => path.endsWith('.ts'));
  // The project's own is in node_modules, which the copy shares: replaced, the next check would start from nothing.
  const compilerOptions = { tsBuildInfoFile: 'page.tsbuildinfo' };
  writeFileSync(
    join(tree.folder, 'page.json'),
    JSON.stringify({ extends: './tsconfig.json', compilerOptions, files, include: [] }),
  );
  // One checker, because each of several would reread what they share.
  const tsc = ['node_modules/typescript/bin/tsc', '--project', 'page.json', '--checkers', '1'];
  const { stdout } = spawnSync(process.execPath, tsc, { cwd: tree.folder, encoding: 'utf8' });
  expect(stdout).toBe('');
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
