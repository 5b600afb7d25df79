import { relative } from 'node:path';
import type { Config } from '../config/config.ts';

/** Describes the files that the settings come from, and which of their values are ignored. */
export function settingsSources(
  { configPath, envFiles, hiddenSettings }: Pick<Config, 'configPath' | 'envFiles' | 'hiddenSettings'>,
  cwd = process.cwd(),
): string {
  const files = [
    ...(configPath === undefined ? [] : [`${shortPath(configPath, cwd)}${replaced(hiddenSettings)}`]),
    ...envFiles.map(({ path, names, hidden }) => {
      const values = `${names.length} ${names.length === 1 ? 'value' : 'values'}`;
      const ignored = hidden.length === 0 ? '' : `; set elsewhere and ignored here: ${hidden.join(', ')}`;
      return `${shortPath(path, cwd)} (${values}${ignored})`;
    }),
  ];
  return files.length === 0 ? 'defaults and the environment' : files.join(', ');
}

function replaced(hidden: Config['hiddenSettings']): string {
  if (hidden.length === 0) return '';
  const words = hidden.map(({ setting, by }) => `${setting} (overridden by ${by})`);
  return ` (ignored: ${words.join(', ')})`;
}

function shortPath(path: string, cwd: string): string {
  const near = relative(cwd, path);
  return near.startsWith('..') ? path : near;
}
