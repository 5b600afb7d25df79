import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const root = mkdtempSync(join(tmpdir(), 'parley-bundles-'));

/** An installation of what is bundled, and of nothing else. */
function install() {
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const folder of ['bin', 'scripts', ...libraries.map((name) => `node_modules/${name}`)])
    cpSync(folder, join(root, folder), { recursive: true, filter: (path) => !path.endsWith('.bundle') });
  // What the SDK itself needs.
  for (const name of ['@opentelemetry', 'standardwebhooks'])
    symlinkSync(resolve('node_modules', name), join(root, 'node_modules', name));
}

const libraries = ['@anthropic-ai/sdk', 'kysely', 'zod'];
const imports = [...libraries, 'kysely/migration'];

/** What a program is given for each import: where from, and the names in it. */
function importAll(): Record<string, { readonly url: string; readonly names: readonly string[] }> {
  const program = `
    const read = async (name) => [name, { url: import.meta.resolve(name), names: Object.keys(await import(name)) }];
    console.log(JSON.stringify(Object.fromEntries(await Promise.all(${JSON.stringify(imports)}.map(read)))));`;
  const args = ['--import', './bin/use-bundles.mjs', '--input-type=module', '--eval', program];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
  if (stderr !== '') throw new Error(stderr);
  return JSON.parse(stdout) as ReturnType<typeof importAll>;
}

function bundle() {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/bundle-libraries.mjs'], {
    cwd: root,
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
}

/** As an installation for development has it. */
function withBundler() {
  for (const name of ['rolldown', '@rolldown', '@oxc-project'])
    symlinkSync(resolve('node_modules', name), join(root, 'node_modules', name));
}

/** One installation after the other: each copies thousands of files. */
it('a library is read from one file that gives the same names, as long as it is of that version', () => {
  install();
  bundle();
  const before = importAll();
  // Nothing can make bundles there: they are read as they came.
  expect(before.kysely?.url).toContain('node_modules/kysely/dist/index.js');

  withBundler();
  bundle();
  const after = importAll();
  for (const name of imports) {
    expect(before[name]?.url).not.toContain('.bundle');
    expect(after[name]?.url).toContain('.bundle');
    expect(after[name]?.names.toSorted()).toEqual(before[name]?.names.toSorted());
  }

  rmSync(join(root, 'node_modules/kysely'), { recursive: true });
  cpSync('node_modules/kysely', join(root, 'node_modules/kysely'), {
    recursive: true,
    filter: (path) => !path.endsWith('.bundle'),
  });
  const { kysely, zod } = importAll();
  expect([kysely?.url, zod?.url]).toEqual([
    expect.not.stringContaining('.bundle'),
    expect.stringContaining('.bundle'),
  ]);
});
