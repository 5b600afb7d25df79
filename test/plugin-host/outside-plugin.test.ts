import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { definePlugin } from '#contracts/plugin-kit.ts';
import { parleyCommand } from '../../src/channel-kit/own-commands.ts';
import type { Config } from '../../src/config/config.ts';
import { bundledPlugins } from '../../src/config/plugin-schema.ts';
import { namesAt } from '../../src/config/problem.ts';
import { createModuleGuard } from '../../src/plugin-host/module-guard.ts';
import { loadOutsidePlugin, pluginPlaces } from '../../src/plugin-host/outside-plugin.ts';
import { maxPluginFiles, readPluginFiles } from '../../src/plugin-host/plugin-folder.ts';
import { aFolder } from '../support/own-folder.ts';

const guard = createModuleGuard();
afterAll(() => guard.close());

const good = `import { definePlugin } from 'parley/plugin';
export const plugin = definePlugin({ id: 'weather', setup() {} });
`;

/** Writes files below a new folder with a workspace; returns the settings that a start would read there. */
async function aHome(
  files: Readonly<Record<string, string>>,
  plugins: Readonly<Record<string, unknown>> = {},
) {
  const home = aFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), text);
  }
  await mkdir(join(home, 'data/workspace'), { recursive: true });
  // Only what the loader reads.
  const config = {
    configPath: join(home, 'parley.config.json'),
    dataDir: join(home, 'data'),
    agents: [{ workspace: join(home, 'data/workspace') }],
    plugins,
  } as unknown as Config;
  return { home, config, load: (id = 'weather') => loadOutsidePlugin(config, id, guard) };
}

/** The same, with the digest of the files as they are now. */
async function accepted(
  files: Readonly<Record<string, string>>,
  { from = './weather', id = 'weather' }: { readonly from?: string; readonly id?: string } = {},
) {
  const { home, config } = await aHome(files);
  const read = await readPluginFiles(from, pluginPlaces(config));
  const digest = read.kind === 'read' ? read.digest : `sha256-${'0'.repeat(64)}`;
  const withPlugin = { ...config, plugins: { [id]: { from, digest } } } as unknown as Config;
  return { home, config: withPlugin, load: () => loadOutsidePlugin(withPlugin, id, guard) };
}

/** Files that some program or other loads from the folder it is started in. */
const loaders = [
  ...[
    'package.json',
    'index.ts',
    'index.js',
    'index.mjs',
    '.npmrc',
    '.env',
    'parley.config.json',
    '.node_repl_history',
  ],
  ...[
    'node_modules/parley/index.js',
    'node_modules/zod/index.js',
    'plugins/weather/index.ts',
    '.parley/plugins/a.ts',
  ],
  ...[
    'hooks/session_start',
    'skills/a/SKILL.md',
    'extensions/a.ts',
    '.pi/extensions/a.ts',
    '.claude/settings.json',
  ],
  ...['.claude-plugin/plugin.json', 'openclaw.plugin.json', 'vitest.config.ts'],
];

function contentOf(path: string, mark: string): string {
  if (path === '.env') return 'NODE_OPTIONS=--import=./index.mjs\n';
  if (path === '.npmrc') return 'node-options=--import=./index.mjs\n';
  return path.endsWith('.json') ? '{"main":"index.js","type":"module"}' : `${mark}\n${good}`;
}

describe('a plugin from outside', () => {
  it.each([
    ['TypeScript', './weather', { 'weather/index.ts': `const a: number = 1; void a;\n${good}` }],
    ['JavaScript', './weather', { 'weather/index.js': good, 'weather/package.json': '{"type":"module"}' }],
    [
      'its manifest',
      './weather',
      { 'weather/src/a.mjs': good, 'weather/package.json': '{"exports":{".":"./src/a.mjs"}}' },
    ],
    [
      'an installed package',
      '@ann/weather',
      {
        'node_modules/@ann/weather/main.mjs': good,
        'node_modules/@ann/weather/package.json': '{"main":"main.mjs"}',
      },
    ],
    [
      'a default export',
      './weather',
      { 'weather/index.mjs': good.replace('const plugin =', 'default').replace('export const', 'export') },
    ],
    [
      'ES modules without a type in package.json',
      './weather',
      { 'weather/index.js': good, 'weather/package.json': '{}' },
    ],
    [
      'CommonJS',
      './weather',
      {
        'weather/index.js':
          "const { definePlugin } = require('parley/plugin');\nmodule.exports = definePlugin({ id: 'weather', setup() {} });",
      },
    ],
    [
      'CommonJS as compilers write it',
      './weather',
      {
        'weather/index.js':
          "Object.defineProperty(exports, '__esModule', { value: true });\nconst kit_1 = require('parley/plugin');\nexports.default = kit_1.definePlugin({ id: 'weather', setup() {} });",
      },
    ],
  ])('loads from %s', async (_, from, files) => {
    const { load } = await accepted(files as unknown as Record<string, string>, { from });
    expect(await load()).toMatchObject({ kind: 'ready', definition: { id: 'weather' } });
  });

  it.each<[string, (home: string) => Promise<void>]>([
    ['a changed byte', (home) => writeFile(join(home, 'weather/index.ts'), `${good} `)],
    ['another file', (home) => writeFile(join(home, 'weather/late.ts'), '')],
    ['a file less', (home) => rm(join(home, 'weather/note.txt'))],
    ['a renamed file', (home) => rename(join(home, 'weather/note.txt'), join(home, 'weather/note.md'))],
  ])('stays off after %s, and is not run', async (_, change) => {
    const files = { 'weather/index.ts': `globalThis.ran = true;\n${good}`, 'weather/note.txt': 'x' };
    const { home, load } = await accepted(files);
    await change(home);
    expect(await load()).toEqual({
      kind: 'failed',
      problem: `its files have changed since they were accepted. See what changed: ${parleyCommand} plugins check weather`,
    });
    expect(globalThis).not.toHaveProperty('ran');
  });

  it('loads no file that has changed after the start', async () => {
    const { home, load } = await accepted({
      'weather/index.ts': `export const later = () => import('./later.ts');\n${good}`,
      'weather/later.ts': 'export const a = 1;',
    });
    expect(await load()).toMatchObject({ kind: 'ready' });
    await writeFile(join(home, 'weather/later.ts'), 'export const a = 2;');
    await expect(import(join(home, 'weather/later.ts'))).rejects.toThrow(
      'has changed since the plugin was checked',
    );
  });

  it.each<[string, Record<string, string>, RegExp]>([
    [
      'a folder in a workspace',
      { 'data/workspace/weather/index.ts': good },
      /agents or other people put files/,
    ],
    ['a folder around a workspace', { 'data/index.ts': good }, /agents or other people put files/],
    [
      'files that people have sent',
      { 'data/media/weather/index.ts': good },
      /agents or other people put files/,
    ],
  ])('never comes from %s', async (_, files, problem) => {
    const from = `./${dirname(Object.keys(files)[0] ?? '')}`;
    const { load } = await accepted(files, { from });
    expect(await load()).toMatchObject({ kind: 'failed', problem: expect.stringMatching(problem) });
  });

  it('runs none of 20 loaders planted in a workspace, however a plugin is named', async () => {
    const mark = 'globalThis.planted = (globalThis.planted ?? 0) + 1;';
    const planted = Object.fromEntries(
      loaders.map((path) => [`data/workspace/${path}`, contentOf(path, mark)]),
    );
    const { home, config } = await aHome(planted);
    const workspace = join(home, 'data/workspace');
    for (const [link, target] of [
      ['linked', workspace],
      ['node_modules/linked', join(workspace, 'plugins/weather')],
      ['around/inner', workspace],
      ['single/index.ts', join(workspace, 'index.ts')],
    ] as const) {
      await mkdir(dirname(join(home, link)), { recursive: true });
      await symlink(target, join(home, link));
    }
    const names = [
      ...[
        './data/workspace',
        `${workspace}/plugins/weather`,
        './data/../data/workspace',
        './linked',
        'linked',
      ],
      ...[
        './linked/plugins/weather',
        './around',
        './single',
        './data',
        '../data/workspace',
        'file:./data/workspace',
      ],
      ...['data/workspace'],
    ];
    for (const from of names) {
      const read = await readPluginFiles(from, pluginPlaces(config));
      expect(read, from).toMatchObject({ kind: 'refused' });
      const plugins = { weather: { from, digest: `sha256-${'0'.repeat(64)}` } };
      const loaded = await loadOutsidePlugin({ ...config, plugins } as unknown as Config, 'weather', guard);
      expect(loaded, from).toMatchObject({ kind: 'failed' });
    }
    expect(globalThis).not.toHaveProperty('planted');
  });

  it('contains no links, which could lead elsewhere later', async () => {
    const { home, config } = await aHome({ 'weather/index.ts': good, 'other.ts': good });
    await symlink(join(home, 'other.ts'), join(home, 'weather/other.ts'));
    const read = await readPluginFiles('./weather', pluginPlaces(config));
    expect(read).toMatchObject({ kind: 'refused', problem: expect.stringContaining('symbolic link') });
  });

  it('needs neither settings nor a disposer', async () => {
    const { configSchema, setup } = definePlugin({ id: 'weather', setup() {} });
    expect(configSchema.safeParse({})).toMatchObject({ success: true });
    expect(configSchema.safeParse({ city: 'Graz' })).toMatchObject({ success: false });
    expect(await setup({} as Parameters<typeof setup>[0], {})).toBeInstanceOf(Function);
  });

  it('has a bounded number of files', async () => {
    const many = Array.from(
      { length: maxPluginFiles + 1 },
      (_, index) => [`weather/${index}.txt`, ''] as const,
    );
    const { config } = await aHome(Object.fromEntries(many));
    const read = await readPluginFiles('./weather', pluginPlaces(config));
    expect(read).toMatchObject({ kind: 'refused', problem: expect.stringContaining('more than 2000 files') });
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ['no entry', { 'weather/a.ts': good }, /no index\.ts or index\.js/],
    ['another program’s plugin', { 'weather/openclaw.plugin.json': '{}' }, /for another program/],
    [
      'a missing entry',
      { 'weather/package.json': '{"exports":"./dist/a.js"}' },
      /names \.\/dist\/a\.js.*Build it/,
    ],
    [
      'no export',
      { 'weather/index.ts': 'export const a = 1;' },
      /exports no plugin\. Write: export const plugin/,
    ],
    [
      'a function',
      { 'weather/index.ts': 'export default function (pi: object) { return pi; }' },
      /exports a function, not a plugin/,
    ],
    ['no setup', { 'weather/index.ts': "export const plugin = { id: 'weather' };" }, /no setup function/],
    [
      'register instead of setup',
      { 'weather/index.ts': "export default { id: 'weather', register() {} };" },
      /no setup function/,
    ],
    [
      'a wrong schema',
      {
        'weather/index.ts':
          "export const plugin = { id: 'weather', configSchema: { type: 'object' }, setup() {} };",
      },
      /isn't a zod schema/,
    ],
    [
      'another id',
      { 'weather/index.ts': good.replace("'weather'", "'meteo'") },
      /calls itself "meteo"\. Rename/,
    ],
    [
      'a native module for another Node.js',
      { 'weather/index.js': "require('./a.node');", 'weather/a.node': 'none' },
      /Rebuild it for the Node\.js that Parley runs on/,
    ],
    [
      'a missing package that is required',
      { 'weather/index.js': "require('not-there');" },
      /Install what it needs/,
    ],
    ['a missing package', { 'weather/index.ts': `import 'not-there';\n${good}` }, /Install what it needs/],
    ['syntax that cannot be stripped', { 'weather/index.ts': `enum A { b }\n${good}` }, /only strips types/],
    [
      'code that throws',
      { 'weather/index.ts': `throw new Error('no luck');\n${good}` },
      /can't be loaded: no luck \(index\.ts:1\)$/,
    ],
    [
      'text that is no TypeScript',
      { 'weather/index.ts': `${good}\nconst a = (1;\n` },
      /^(?!.*strips).*can't be loaded: .* \(index\.ts:\d+\)\.$/,
    ],
  ])('says what to do about %s', async (_, files, problem) => {
    const { load } = await accepted(files);
    expect(await load()).toMatchObject({ kind: 'failed', problem: expect.stringMatching(problem) });
  });

  it.each<[string, unknown, RegExp]>([
    ['an unknown name', { enabled: true }, /no plugin of this name.*Parley's own: files/],
    ['no digest', { from: './weather' }, /nobody has accepted its files.*plugins check weather --accept/],
    ['a wrong digest', { from: './weather', digest: `sha256-${'0'.repeat(64)}` }, /have changed/],
    [
      'a digest of another form',
      { from: './weather', digest: 'abc' },
      /plugins\.weather\.digest: "abc" isn't a digest/,
    ],
    ['a missing folder', { from: './gone', digest: `sha256-${'0'.repeat(64)}` }, /there is no folder .*gone/],
    ['a folder without ./', { from: 'weather', digest: `sha256-${'0'.repeat(64)}` }, /write \.\/weather/],
    [
      'an unset variable',
      { from: './weather', config: { key: ['$', '{WEATHER_KEY}'].join('') } },
      /need the variable WEATHER_KEY/,
    ],
    ['text', 'weather', /plugins\.weather/],
  ])('says what to do about %s in its settings', async (_, settings, problem) => {
    const { config, load } = await aHome({ 'weather/index.ts': good }, { weather: settings });
    expect(config.plugins).toHaveProperty('weather');
    expect(await load()).toMatchObject({ kind: 'failed', problem: expect.stringMatching(problem) });
  });

  it('takes no name of a plugin that comes with Parley', () => {
    expect(namesAt(['plugins']).toSorted()).toEqual(bundledPlugins.toSorted());
  });

  it.each(['files', 'core', 'Weather', 'a b', '__proto__', 'x'.repeat(33)])(
    'can’t be named %s',
    async (id) => {
      const { load } = await aHome({}, { [id]: { from: './weather' } });
      expect(await load(id)).toMatchObject({ kind: 'failed' });
    },
  );

  it('loads once while its files are unchanged, and whole after a change', async () => {
    const files = {
      'weather/index.ts': `import { id } from './id.ts';\nimport data from './data.json' with { type: 'json' };\n${good.replace("'weather'", 'id, data')}`,
      'weather/id.ts': `export const id: string = 'weather';\n`,
      'weather/data.json': '1',
    };
    const { home, config } = await aHome(files);
    const load = async () => {
      const read = await readPluginFiles('./weather', pluginPlaces(config));
      const digest = read.kind === 'read' ? read.digest : '';
      const plugins = { weather: { from: './weather', digest } };
      const loaded = await loadOutsidePlugin({ ...config, plugins } as unknown as Config, 'weather', guard);
      return loaded.kind === 'ready' ? loaded.definition : loaded;
    };
    const first = await load();
    expect(first).toMatchObject({ id: 'weather', data: 1 });
    expect(await load()).toBe(first);
    await writeFile(join(home, 'weather/data.json'), '2');
    expect(await load()).toMatchObject({ id: 'weather', data: 2 });
    await writeFile(join(home, 'weather/id.ts'), `export const id: string = 'tides';\n`);
    expect(await load()).toMatchObject({ problem: expect.stringContaining('calls itself "tides"') });
  });

  it('loads at the next try when what it lacked outside its folder is there', async () => {
    const { home, load } = await accepted({ 'weather/index.ts': `import 'late';\n${good}` });
    expect(await load()).toMatchObject({ problem: expect.stringContaining('Install what it needs') });
    await mkdir(join(home, 'node_modules/late'), { recursive: true });
    await writeFile(join(home, 'node_modules/late/index.js'), '');
    expect(await load()).toMatchObject({ kind: 'ready' });
  });

  it('waits for a restart if a required module has changed, which Node.js loads only once', async () => {
    const entry = `import { id } from './id.cjs';\n${good.replace("'weather'", 'id')}`;
    const { home, config } = await aHome({
      'weather/index.ts': entry,
      'weather/id.cjs': "exports.id = 'weather';",
    });
    const load = async () => {
      const read = await readPluginFiles('./weather', pluginPlaces(config));
      const plugins = { weather: { from: './weather', digest: read.kind === 'read' ? read.digest : '' } };
      return loadOutsidePlugin({ ...config, plugins } as unknown as Config, 'weather', guard);
    };
    expect(await load()).toMatchObject({ kind: 'ready' });
    await writeFile(join(home, 'weather/unused.cjs'), '');
    expect(await load()).toMatchObject({ kind: 'ready' });
    await writeFile(join(home, 'weather/id.cjs'), "exports.id = 'tides';");
    expect(await load()).toMatchObject({
      waits: true,
      problem: expect.stringMatching(/^id\.cjs has changed.*Restart/),
    });
  });
});
