/** Adds, lists, checks and removes the plugins that aren't Parley's own. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { homeFolder, readSurroundings } from '../config/environment.ts';
import { loadConfig } from '../config/load-config.ts';
import { bundledPlugins, outsidePlugin, outsidePlugins } from '../config/plugin-schema.ts';
import { settingsOfPlugin } from '../config/plugin-secrets.ts';
import { type SettingsChange, writeSettings } from '../config/write-settings.ts';
import { createModuleGuard } from '../plugin-host/module-guard.ts';
import { findIdProblem, importPlugin, pluginPlaces } from '../plugin-host/outside-plugin.ts';
import { isFolderName, type PluginFiles, readPluginFiles } from '../plugin-host/plugin-folder.ts';
import { askGateway } from './ask-gateway.ts';
import { wordsForWritten } from './onboard/report-settings.ts';
import { templateOf } from './plugin-template.ts';
import type { CommandOutput } from './print.ts';
import { takeUpSettings } from './reload.ts';

const rightsNotice =
  'It runs inside Parley with all of Parley’s rights: it can read your messages, files and keys. Only add code that you trust.';

/** Adds a plugin to the configuration, with the digest of its files. */
export async function addPlugin(named: string): Promise<CommandOutput> {
  const config = loadConfig();
  const { base } = pluginPlaces(config);
  const from = isFolderName(named) ? shortened(resolve(named), base) : named;
  const files = await readFiles(config, from);
  const definition = await importPlugin(files, createModuleGuard());
  if (typeof definition === 'string') throw refused(named, definition);
  const { id, configSchema } = definition;
  const problem = findIdProblem(id) ?? findNamesake(config, id, from);
  if (problem !== undefined) throw refused(named, problem);
  const written = await acceptFiles(config, id, { from, files });
  const { config: settings = {} } = { ...settingsOfPlugin(config, id) };
  const { error } = configSchema.safeParse(settings);
  const taken = await takeUpSettings(config);
  const lines = [
    `Added the plugin ${id} from ${from} (${count(files.files.size, 'file')}).`,
    rightsNotice,
    written,
    ...(error === undefined
      ? []
      : [`It needs settings, in plugins.${id}.config of the same file:`, z.prettifyError(error)]),
    ...taken.lines,
  ];
  const result = { id, from, digest: files.digest, files: [...files.files.keys()] };
  return { result, lines, code: taken.failed.includes(id) ? 1 : 0 };
}

/**
 * Lists all plugins, whether their files are the accepted ones, and what is wrong with them in the running gateway. Runs
 * none of their code.
 */
export async function listPlugins(): Promise<CommandOutput> {
  const config = loadConfig();
  const own = bundledPlugins.map((id) => {
    const isOn = settingsOfPlugin(config, id).enabled !== false;
    return { id, from: 'Parley', state: isOn ? 'on' : 'off' };
  });
  const outside = await Promise.all(idsOf(config).map((id) => inspect(config, id)));
  const problems = await problemsOf(config);
  const plugins = [
    ...own,
    ...outside.map(({ id, from, state, detail }) => {
      const reported = problems.get(`plugin ${id}`);
      const shown = state === 'on' && reported !== undefined ? 'trouble' : state;
      return { id, from, state: shown, detail: detail ?? reported };
    }),
  ];
  const width = Math.max(...plugins.map(({ id }) => id.length));
  const lines = plugins.map(({ id, from, state, ...rest }) => {
    const detail = 'detail' in rest && rest.detail !== undefined ? `: ${rest.detail}` : '';
    return `${id.padEnd(width)}  ${state.padEnd(8)}  ${from}${detail}`;
  });
  return { result: plugins, lines };
}

/** Returns what the running gateway reports, by the names in its status. */
async function problemsOf(config: Config): Promise<ReadonlyMap<string, string>> {
  const answer = await askGateway(config);
  const problems = answer.kind === 'running' ? (answer.status.problems ?? []) : [];
  return new Map(problems.map(({ id, text }) => [id, text.replace(`${id}: `, '')]));
}

/** Shows what has changed in the plugins' files; `accepts`: the files are accepted as they are now. */
export async function checkPluginFiles(
  asked: string | undefined,
  { accepts }: { readonly accepts: boolean },
): Promise<CommandOutput> {
  const config = loadConfig();
  if (asked !== undefined) assertKnown(config, asked);
  const found = await Promise.all(
    (asked === undefined ? idsOf(config) : [asked]).map((id) => inspect(config, id)),
  );
  const lines: string[] = found.length === 0 ? ['No plugins have been added.'] : [];
  let isWell = true;
  for (const { id, from, state, detail, files } of found) {
    lines.push(`${id}: ${describeState[state]}${detail === undefined ? '' : `: ${detail}`}`);
    if (state === 'failed') isWell = false;
    if (files === undefined || (state !== 'changed' && state !== 'new')) continue;
    lines.push(...(await changesOf(config, id, files)));
    if (accepts) lines.push(`Accepted. ${await acceptFiles(config, id, { from, files })}`);
    else {
      isWell = false;
      lines.push('It is off from the next start or reload on, until they are accepted.');
      lines.push(`If this is what you want: ${parleyCommand} plugins check ${id} --accept`);
    }
  }
  if (lines.some((line) => line.startsWith('Accepted'))) {
    const taken = await takeUpSettings(config);
    lines.push(...taken.lines);
    if (found.some(({ id }) => taken.failed.includes(id))) isWell = false;
  }
  const result = found.map(({ id, from, state, detail }) => ({ id, from, state, detail }));
  return { result: { isWell, plugins: result }, lines, code: isWell ? 0 : 1 };
}

/** Removes a plugin from the configuration; its folder and what it has stored stay. */
export async function removePlugin(id: string): Promise<CommandOutput> {
  const config = loadConfig();
  assertKnown(config, id);
  const written = await write({ plugins: { [id]: undefined } });
  await rm(recordPath(config, id), { force: true });
  const lines = [
    `Removed the plugin ${id}; its files and its data stay.`,
    written,
    ...(await takeUpSettings(config)).lines,
  ];
  return { result: { id }, lines };
}

/** Writes a new plugin to start from: a tool, its test and a README. */
export async function newPlugin(name: string): Promise<CommandOutput> {
  const problem = findIdProblem(name);
  if (problem !== undefined) throw new ParleyError('invalid_input', problem);
  const folder = resolve(name);
  await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST')
      throw new ParleyError('invalid_input', `${folder} exists already. Choose another name.`);
    throw error;
  });
  const files = Object.entries(templateOf(name));
  for (const [path, text] of files) await writeFile(join(folder, path), text);
  const lines = [
    folder,
    ...files.map(([path]) => `  ${path}`),
    `Test it:  cd ${name} && npm test`,
    `Use it:   ${parleyCommand} plugins add ./${name}`,
  ];
  return { result: { folder, files: files.map(([path]) => path) }, lines };
}

type State = 'on' | 'off' | 'changed' | 'new' | 'failed';

type PluginFacts = {
  readonly id: string;
  readonly from: string;
  readonly state: State;
  readonly detail?: string | undefined;
  readonly files?: PluginFiles;
};

const describeState: Readonly<Record<State, string>> = {
  on: 'unchanged',
  off: 'turned off',
  changed: 'its files have changed since they were accepted',
  new: 'its files have not been accepted yet',
  failed: 'it stays off',
};

/** Compares a plugin's files with its digest. */
async function inspect(config: Config, id: string): Promise<PluginFacts> {
  const idProblem = findIdProblem(id);
  const { data } = outsidePlugin.safeParse(settingsOfPlugin(config, id));
  if (idProblem !== undefined || data === undefined) {
    const detail = idProblem ?? `plugins.${id} isn't valid; run: ${parleyCommand} config check`;
    return { id, from: '', state: 'failed', detail };
  }
  const { from, digest, enabled } = data;
  const files = await readPluginFiles(from, pluginPlaces(config));
  if (files.kind === 'refused') return { id, from, state: 'failed', detail: `${files.problem}.` };
  if (digest === undefined) return { id, from, state: 'new', files };
  if (files.digest !== digest) return { id, from, state: 'changed', files };
  return { id, from, state: enabled ? 'on' : 'off', files };
}

async function readFiles(config: Config, from: string): Promise<PluginFiles> {
  const files = await readPluginFiles(from, pluginPlaces(config));
  if (files.kind === 'refused') throw refused(from, `${files.problem}.`);
  return files;
}

function refused(named: string, problem: string): ParleyError {
  return new ParleyError('invalid_input', `${named} can't be added: ${problem}`);
}

function findNamesake(config: Config, id: string, from: string): string | undefined {
  const { from: other } = settingsOfPlugin(config, id);
  if (other === undefined || other === from) return undefined;
  return `plugins.${id} comes from ${String(other)} already. Remove that first: ${parleyCommand} plugins remove ${id}`;
}

function idsOf({ plugins }: Config): readonly string[] {
  return [...outsidePlugins(plugins).keys()];
}

function assertKnown(config: Config, id: string): void {
  const known = idsOf(config);
  if (known.includes(id)) return;
  const those = known.length === 0 ? 'None has been added.' : `Added: ${known.join(', ')}.`;
  throw new ParleyError('invalid_input', `There is no added plugin ${id}. ${those}`);
}

/** Writes the digest into the configuration, and the list of files beside the data, to show changes later. */
async function acceptFiles(
  config: Config,
  id: string,
  { from, files }: { readonly from: string; readonly files: PluginFiles },
): Promise<string> {
  const written = await write({ plugins: { [id]: { from, digest: files.digest } } });
  await mkdir(join(config.dataDir, 'plugins'), { recursive: true, mode: 0o700 });
  const record = { digest: files.digest, files: Object.fromEntries(files.files) };
  await writeFile(recordPath(config, id), `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600 });
  return written;
}

async function write(change: SettingsChange): Promise<string> {
  const home = homeFolder();
  return wordsForWritten(await writeSettings(change, readSurroundings(home), home));
}

const recordSchema = z.object({ files: z.record(z.string(), z.string()) });

function recordPath({ dataDir }: Config, id: string): string {
  return join(dataDir, 'plugins', `${id}.json`);
}

/** Lists the files that differ from those last accepted; all of them if that isn't known. */
async function changesOf(config: Config, id: string, { files }: PluginFiles): Promise<readonly string[]> {
  const before = await readFile(recordPath(config, id), 'utf8').then(
    (text) => new Map(Object.entries(recordSchema.parse(JSON.parse(text)).files)),
    () => new Map<string, string>(),
  );
  const changes = [...files].flatMap(([path, digest]) => {
    const old = before.get(path);
    if (old === digest) return [];
    return [`  ${old === undefined ? 'new     ' : 'changed '} ${path}`];
  });
  const removed = [...before.keys()].filter((path) => !files.has(path)).map((path) => `  removed  ${path}`);
  return [...changes, ...removed];
}

/** Returns the path as the configuration file would name it. */
function shortened(path: string, base: string): string {
  const way = relative(base, path);
  return way === '' || way.startsWith('..') ? path : `./${way}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
