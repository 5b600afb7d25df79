import type { Config } from './config.ts';
import { type Environment, variableNamed } from './environment.ts';
import { bundledPlugins } from './plugin-schema.ts';
import type { Problem } from './problem.ts';
import type { FileSettings } from './schema.ts';
import { findSecretProblem, Secret } from './secret.ts';

/** The default variable of each search service's key; one's own SearXNG needs none. */
const keyVariables = { searxng: undefined, brave: 'BRAVE_API_KEY', tavily: 'TAVILY_API_KEY' } as const;

/** Adds the secrets of plugins to their settings. Like all secrets, they only come from the environment. */
export function readPluginSecrets(
  written: FileSettings['plugins'],
  environment: Environment,
): { readonly plugins: FileSettings['plugins']; readonly problems: readonly Problem[] } {
  const plugins = withVariables(written, environment);
  const { search, searchKey } = plugins.web;
  const variable = search && (search.keyEnv ?? keyVariables[search.backend]);
  const problems: Problem[] = [];
  if (searchKey !== undefined)
    problems.push({
      where: 'plugins.web.searchKey',
      what: `belongs in the environment; set it there as ${variable ?? 'BRAVE_API_KEY or TAVILY_API_KEY'}`,
    });
  const key = variable === undefined ? undefined : variableNamed(variable, environment);
  if (variable === undefined || key === undefined) return { plugins, problems };
  const problem = findSecretProblem(key, 'api-key');
  if (problem !== undefined)
    problems.push({
      where: `${variable} in the environment`,
      what: `${problem}; set a real key, or unset it`,
    });
  return { plugins: { ...plugins, web: { ...plugins.web, searchKey: new Secret(key) } }, problems };
}

/** Replaces `"${NAME}"` in the settings of plugins from outside; an unset variable is reported when one is loaded. */
function withVariables(plugins: FileSettings['plugins'], environment: Environment): FileSettings['plugins'] {
  const fill = (value: unknown): unknown => {
    if (typeof value === 'string') {
      const [, name] = variableReference.exec(value) ?? [];
      const found = name === undefined ? undefined : variableNamed(name, environment);
      return found === undefined ? value : new Secret(found);
    }
    if (Array.isArray(value)) return value.map(fill);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, fill(member)]));
  };
  const filled = Object.entries(plugins).map(([id, own]) => [
    id,
    bundledPlugins.includes(id) ? own : fill(own),
  ]);
  return { ...plugins, ...Object.fromEntries(filled) };
}

/** A setting of a plugin that stands for a variable. */
export const variableReference = /^\$\{([A-Za-z_]\w*)\}$/;

/** Reads the variables that the settings allow each skill; one that isn't set is left out. */
export function readSkillVariables(
  allowed: FileSettings['skills']['environment'],
  environment: Environment,
): Config['skills']['environment'] {
  return Object.fromEntries(
    Object.entries(allowed).map(([skill, names]) => {
      const found = names.map((name) => [name, variableNamed(name, environment)] as const);
      const set = found.flatMap(([name, value]) => (value === undefined ? [] : [[name, new Secret(value)]]));
      return [skill, Object.fromEntries(set)];
    }),
  );
}

/** Returns a plugin's settings with its secrets as plain text, for its own schema. */
export function settingsOfPlugin({ plugins }: Pick<Config, 'plugins'>, id: string): Record<string, unknown> {
  // Core knows that settings are an object only for the plugins that come with it.
  return reveal(new Map<string, unknown>(Object.entries(plugins)).get(id) ?? {}) as Record<string, unknown>;
}

function reveal(value: unknown): unknown {
  if (value instanceof Secret) return value.reveal();
  if (Array.isArray(value)) return value.map(reveal);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, reveal(member)]));
}
