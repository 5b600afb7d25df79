import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import stripJsonComments from 'strip-json-comments';
import { parseJson } from '#channel-kit/parse-json.ts';
import { accountVariable } from './channel-accounts.ts';
import { accountNetworks, type NetworkName } from './credentials.ts';
import type { Problem } from './problem.ts';

export type ConfigFile = {
  /** Absolute; absent when no file exists and none was named. */
  readonly path?: string;
  readonly content: Readonly<Record<string, unknown>>;
  readonly problems: readonly Problem[];
  /** Only for a file that isn't valid JSON: settings that could be read on their own. */
  readonly places?: Readonly<Record<string, unknown>>;
};

/** Returns the path of the configuration file: the one in PARLEY_CONFIG, or else in the installation's home. */
export function configFilePath(named: string | undefined, home: string): string {
  return resolve(home, named ?? 'parley.config.json');
}

/** Reads the file, which must exist if it is named. Comments and trailing commas are allowed. */
export function readConfigFile(named: string | undefined, home: string): ConfigFile {
  const path = configFilePath(named, home);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (isAbsent && named === undefined) return { content: {}, problems: [] };
    const what = isAbsent ? "doesn't exist; correct PARLEY_CONFIG" : `can't be read (${String(error)})`;
    return { path, content: {}, problems: [{ where: path, what }] };
  }
  return { path, ...parseText(text.replace(/^\uFEFF/, ''), path) };
}

function parseText(text: string, path: string): Omit<ConfigFile, 'path'> {
  // Comments are replaced by white space, so that the parser reports the right line.
  const plain = stripJsonComments(text, { trailingCommas: true });
  if (plain.trim() === '')
    return { content: {}, problems: [{ where: path, what: 'is empty; write {} in it, or remove it' }] };
  try {
    const content = parseJson(plain);
    if (typeof content !== 'object' || content === null || Array.isArray(content)) {
      return { content: {}, problems: [{ where: path, what: "isn't a JSON object; write { … }" }] };
    }
    const problems = [...findRepeated(plain, path), ...findSecrets(content, path, '')];
    return { content: content as Record<string, unknown>, problems };
  } catch (error) {
    return {
      content: {},
      problems: [{ where: path, what: `isn't valid JSON${positionOf(error, plain)}; fix it there` }],
      places: placesIn(text),
    };
  }
}

/** Finds the data folder and the address in a text that isn't valid JSON, so that commands still find the gateway. */
function placesIn(text: string): Readonly<Record<string, unknown>> {
  const [, dataDir] = /^[\s{,]*"dataDir"\s*:\s*"([^"\\]+)"/m.exec(text) ?? [];
  const [, host] = /^[\s{,]*"host"\s*:\s*"([^"\\]+)"/m.exec(text) ?? [];
  const [, port] = /^[\s{,]*"port"\s*:\s*(\d{1,5})/m.exec(text) ?? [];
  return { ...(dataDir && { dataDir }), ...(host && { host }), ...(port && { port: Number(port) }) };
}

/**
 * Returns only the position of the fault, because the parser's quote may contain a secret. Where its message has no
 * position, the fault is where the longest beginning ends that could still be continued.
 */
function positionOf(error: unknown, text: string): string {
  const [, position] = /at position (\d+)/.exec(String(error)) ?? [];
  // Valid, but too deep or too large.
  if (position === undefined && couldGoOn(text)) return '';
  let good = Number(position ?? 0);
  for (let bad = position === undefined ? text.length : good; good < bad; ) {
    const middle = Math.ceil((good + bad) / 2);
    if (couldGoOn(text.slice(0, middle))) good = middle;
    else bad = middle - 1;
  }
  const before = text.slice(0, good).split('\n');
  return ` at line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}

/** Says whether JSON that begins like this is valid, or only lacks its end. */
function couldGoOn(beginning: string): boolean {
  try {
    JSON.parse(beginning);
    return true;
  } catch (error) {
    const [, position] = /at position (\d+)/.exec(String(error)) ?? [];
    return /end of JSON|Unterminated/.test(String(error)) || Number(position) >= beginning.length;
  }
}

/** Finds duplicate names: the parser keeps the last value, so the earlier one would silently have no effect. */
function findRepeated(json: string, path: string): readonly Problem[] {
  const problems: Problem[] = [];
  const open: { readonly names: Set<string>; name: string }[] = [];
  for (const [token, name, isKey] of json.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|[{}[\]]/g)) {
    if (token === '{' || token === '[') open.push({ names: new Set(), name: '' });
    if (token === '}' || token === ']') open.pop();
    const group = open.at(-1);
    if (group === undefined || name === undefined || isKey === undefined) continue;
    group.name = name.slice(1, -1);
    const where = `${open.flatMap((each) => each.name || []).join('.')} in ${path}`;
    if (group.names.has(group.name)) problems.push({ where, what: 'appears twice; merge the two' });
    group.names.add(group.name);
  }
  return problems;
}

/** The variable for each secret that may end up in the file by mistake. */
const variableOf: Readonly<Record<string, string>> = {
  'channels.telegram.token': 'TELEGRAM_BOT_TOKEN',
  'channels.discord.token': 'DISCORD_BOT_TOKEN',
  'channels.signal.webhookSecret': 'SIGNAL_WEBHOOK_SECRET',
};

const secretName = /^(token|.*[a-z]Token|secret|.*Secret|password|.*Password)$/;

function variableOfAccount(place: string): string | undefined {
  const [, network, account] = /^channels\.([^.]+)\.accounts\.([^.]+)\./.exec(place) ?? [];
  const known = Object.keys(accountNetworks).find((name) => name === network);
  // The name was found among the keys.
  return known && account && accountVariable(known as NetworkName, account);
}

/** Finds credentials, which are an error because the file is shared, printed and committed. */
function findSecrets(value: object, path: string, at: string): readonly Problem[] {
  const problems: Problem[] = [];
  for (const [name, member] of Object.entries(value)) {
    const here = at === '' ? name : `${at}.${name}`;
    if (at !== '' && typeof member === 'string' && secretName.test(name)) {
      const variable = variableOf[here] ?? variableOfAccount(here) ?? 'its variable';
      problems.push({
        where: `${here} in ${path}`,
        what: `secrets don't belong in the file; set ${variable} in the environment and remove it here`,
      });
    } else if (typeof member === 'object' && member !== null) {
      problems.push(...findSecrets(member, path, here));
    }
  }
  return problems;
}
