import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { chatCommands } from '../../src/commands/list.ts';
import { environmentNames } from '../../src/config/environment.ts';
import type { SettingsSchema } from '../../src/config/json-schema.ts';
import { bundledPlugins } from '../../src/config/plugin-schema.ts';
import { operations } from '../../src/operations/list.ts';
import { renderOperations } from './api-table.ts';
import { renderSettings, settingsIn } from './settings-table.ts';

const metricsIn = (text: string) => new Set(text.match(/parley_[a-z_]+[a-z]/g));

/** Returns the metric names used in the code. */
function knownMetrics(): ReadonlySet<string> {
  const folder = 'src/server/metrics';
  const code = readdirSync(folder).map((name) => readFileSync(`${folder}/${name}`, 'utf8'));
  return new Set([...code.join('\n').matchAll(/name: '(parley_[a-z_]+)'/g)].map(([, name]) => name ?? ''));
}

it('lists every variable that Parley reads, once, and no other', () => {
  const docs = readFileSync('docs/configuration.md', 'utf8');
  const table = docs.slice(docs.indexOf('## Environment'), docs.indexOf('## Several bots'));
  const named = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(
    ([, cell = '']) => cell.match(/[A-Z][A-Z0-9_]+/g) ?? [],
  );
  expect(named.toSorted()).toEqual([...environmentNames].sort());
});

it('describes every setting of Parley, channels and plugins, with its default', async () => {
  const { stdout } = spawnSync(process.execPath, ['bin/parley.mjs', 'config', 'schema'], {
    encoding: 'utf8',
  });
  const schema = JSON.parse(stdout) as SettingsSchema;
  expect(schema).toMatchObject({ additionalProperties: false, properties: { port: { default: 7411 } } });
  const settings = settingsIn(schema);
  const paths = settings.map(({ path }) => path);
  expect(settings.filter(({ description }) => description === undefined).map(({ path }) => path)).toEqual([]);
  expect(paths).toEqual(
    expect.arrayContaining(['run.turns', 'channels.signal.heartbeatMs', 'plugins.files.maxFileBytes']),
  );
  expect(paths.filter((path) => /token$|secret/i.test(path))).toEqual([]);
  await expect(renderSettings(settings)).toMatchFileSnapshot('../../docs/settings.md');
});

it('describes every operation in the document of the API, as the table of operations has it', async () => {
  const page = readFileSync('docs/api.md', 'utf8');
  const text = page.slice(0, page.indexOf('### '));
  await expect(`${text}${renderOperations(operations)}`).toMatchFileSnapshot('../../docs/api.md');
});

it('explains every line of doctor in the troubleshooting guide, and no other', () => {
  const own = [...filesIn('src/cli/doctor'), 'src/cli/doctor.ts'].flatMap((path) => lineNames(path));
  const networks = readdirSync('channels').flatMap((channel) => {
    const path = `channels/${channel}/checks.ts`;
    return existsSync(path) ? lineNames(path).map((name) => `${channel} ${name}`) : [];
  });
  expect(networks).toContain('signal webhook');
  const guide = readFileSync('docs/troubleshooting.md', 'utf8');
  const lines = guide.slice(guide.indexOf('## By line of'));
  const explained = [...lines.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name);
  const ofPlugins = ['plugin <id>', ...bundledPlugins.map((id) => `plugin ${id}`)];
  const isOfPlugin = (name = '') => name.startsWith('plugin ');
  expect(explained.filter((name) => !isOfPlugin(name)).toSorted()).toEqual(
    [...new Set([...own, ...networks])].toSorted(),
  );
  expect(ofPlugins).toEqual(expect.arrayContaining(explained.filter(isOfPlugin)));
});

const filesIn = (folder: string) => readdirSync(folder).map((name) => `${folder}/${name}`);

/** Returns the names of the lines that a file of checks can print; a name made of a variable as `<provider> key`. */
function lineNames(path: string): readonly string[] {
  const code = readFileSync(path, 'utf8');
  const fixed = [
    ...code.matchAll(/(?:(?:const name = |\bname: |\b(?:ok|failed|warning)\(\s*)')([a-z][a-z ]*)'/g),
  ];
  const made = [...code.matchAll(/const name = `\$\{(\w+)\}( [a-z]+)`/g)];
  return [...fixed.map(([, name = '']) => name), ...made.map(([, variable, rest]) => `<${variable}>${rest}`)];
}

it('lists every document in the index', () => {
  const index = readFileSync('docs/README.md', 'utf8');
  const documents = readdirSync('docs').filter((name) => name.endsWith('.md') && name !== 'README.md');
  expect(documents.filter((name) => !index.includes(`(${name})`))).toEqual([]);
});

it('lists every chat command and every CLI command, and no other', async () => {
  const docs = readFileSync('docs/commands.md', 'utf8');
  const inChat = [...docs.matchAll(/^\| `\/([a-z]+)/gm)].map(([, name]) => name);
  expect(inChat.toSorted()).toEqual(chatCommands.map(({ name }) => name).toSorted());
  const onLine = [...docs.matchAll(/^\| `parley ((?:[a-z][a-z-]* ?)+)/gm)].map(([, words = '']) =>
    words.trim(),
  );
  expect(onLine.toSorted()).toEqual((await commandsIn([])).toSorted());
});

it('offers JSON with every CLI command except conversations and processes', async () => {
  const without: string[] = [];
  for (const command of await commandsIn([]))
    if (!(await helpOf(command.split(' '))).includes('--json')) without.push(command);
  expect(without.toSorted()).toEqual(['acp', 'chat', 'onboard', 'start']);
});

/** Returns the commands below a group as `--help` lists them, including those of nested groups. */
async function commandsIn(group: readonly string[]): Promise<readonly string[]> {
  const names = await namesIn(group);
  const found: string[] = [];
  for (const name of names) {
    const words = [...group, name];
    const below = await commandsIn(words);
    // A group that is also a command takes its own options.
    if (below.length === 0 || name === 'agent') found.push(words.join(' '));
    found.push(...below);
  }
  return found;
}

async function namesIn(group: readonly string[]): Promise<readonly string[]> {
  const [, list = ''] = (await helpOf(group)).split('\nCommands:\n');
  return [...list.matchAll(/^ {2}([a-z-]+)/gm)].flatMap(([, name = '']) => (name === 'help' ? [] : [name]));
}

async function helpOf(words: readonly string[]): Promise<string> {
  const said: string[] = [];
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  const entry = { start: async () => 0 as const, chatSocket: '', parts: { channels: [], plugins: [] } };
  await runCommandLine([...words, '--help'], entry).finally(() => spy.mockRestore());
  return said.join('');
}

it('describes every metric, and the dashboard uses only existing ones', () => {
  const known = knownMetrics();
  expect(known.size).toBeGreaterThan(20);
  expect(metricsIn(readFileSync('docs/metrics.md', 'utf8'))).toEqual(known);
  const asked = [...metricsIn(readFileSync('docs/grafana.json', 'utf8'))].map((name) =>
    name.replace(/_bucket$/, ''),
  );
  expect(asked.length).toBeGreaterThan(10);
  expect(asked.filter((name) => !known.has(name))).toEqual([]);
});

it('has a section for this version in the changelog', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(readFileSync('CHANGELOG.md', 'utf8')).toContain(`\n## ${version} `);
});
