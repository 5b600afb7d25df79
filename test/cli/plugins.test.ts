import { appendFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { runParley } from './run-parley.ts';

/** A folder with settings whose form must survive, and a plugin. */
async function aHome() {
  const home = aFolder();
  const settings = '{\n    "port": 0,\n    "plugins": { "web": { "search": { "backend": "brave" } } }\n}\n';
  await writeFile(join(home, 'parley.config.json'), settings);
  await mkdir(join(home, 'weather'));
  const source = `import { definePlugin, z } from 'parley/plugin';
export const plugin = definePlugin({ id: 'weather', configSchema: z.strictObject({ city: z.string() }), setup() {} });
`;
  await writeFile(join(home, 'weather/index.ts'), source);
  const run = (...args: readonly string[]) =>
    runParley(['plugins', ...args], { PARLEY_TEST_HOME: home, PARLEY_DATA_DIR: join(home, 'data') });
  return { home, run, settings: () => readFile(join(home, 'parley.config.json'), 'utf8') };
}

it('adds, checks, accepts and removes a plugin, and keeps the form of the settings', async () => {
  const { home, run, settings } = await aHome();
  const added = await run('add', join(home, 'weather'));
  expect(added).toMatchObject({ code: 0, stderr: '' });
  expect(added.stdout).toContain('It runs inside Parley with all of Parley’s rights');
  expect(added.stdout).toMatch(/It needs settings, in plugins\.weather\.config[\s\S]*city/);
  expect(await settings()).toMatch(/^\{\n {4}"port": 0,\n[\s\S]*"backend": "brave"/);
  expect(JSON.parse(await settings()).plugins.weather).toEqual({
    from: './weather',
    digest: expect.stringMatching(/^sha256-[0-9a-f]{64}$/),
  });
  await appendFile(join(home, 'weather/index.ts'), '// changed');
  await writeFile(join(home, 'weather/new.ts'), '');
  const found = await run('check');
  expect(found.code).toBe(1);
  expect(found.stdout).toMatch(
    /were accepted\n {2}changed {2}index\.ts\n {2}new {6}new\.ts\nIt is off from.*\n.*check weather --accept/,
  );
  expect((await run('list')).stdout).toMatch(/^weather +changed {3}\.\/weather$/m);
  expect((await run('check', 'weather', '--accept')).code).toBe(0);
  expect(await run('check', '--json')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('"isWell": true'),
  });
  expect((await run('remove', 'weather')).code).toBe(0);
  expect(await settings()).not.toContain('weather');
});

it('says what to do about a plugin that can’t be added or isn’t there', async () => {
  const { home, run, settings } = await aHome();
  const before = await settings();
  await rm(join(home, 'weather/index.ts'));
  await writeFile(join(home, 'weather/index.ts'), 'export default () => {};');
  expect((await run('add', join(home, 'weather'))).stderr).toContain(
    'Write: export const plugin = definePlugin',
  );
  expect((await run('add', 'weathr')).stderr).toContain('npm install --ignore-scripts weathr');
  expect((await run('remove', 'weathr')).stderr).toBe(
    'There is no added plugin weathr. None has been added.\n',
  );
  expect((await run('new', 'files')).stderr).toContain('is the name of a part of Parley');
  expect(await settings()).toBe(before);
});
