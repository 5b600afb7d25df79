import type { Config } from './config.ts';
import { type Environment, variableNamed } from './environment.ts';
import type { Problem } from './problem.ts';
import type { FileSettings } from './schema.ts';
import { findSecretProblem, revealSettings, Secret } from './secret.ts';

/** The default variable of each search service's key; one's own SearXNG needs none. */
const keyVariables = { searxng: undefined, brave: 'BRAVE_API_KEY', tavily: 'TAVILY_API_KEY' } as const;

/** Adds the secrets of plugins to their settings. Like all secrets, they only come from the environment. */
export function readPluginSecrets(
  plugins: FileSettings['plugins'],
  environment: Environment,
): { readonly plugins: FileSettings['plugins']; readonly problems: readonly Problem[] } {
  const { search, searchKey: written } = plugins.web;
  const variable = search && (search.keyEnv ?? keyVariables[search.backend]);
  const problems: Problem[] = [];
  if (written !== undefined)
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

/** Returns a plugin's settings with its secrets as plain text, for its own schema. */
export function settingsOfPlugin({ plugins }: Pick<Config, 'plugins'>, id: string): Record<string, unknown> {
  return revealSettings(
    new Map<string, Readonly<Record<string, unknown>>>(Object.entries(plugins)).get(id) ?? {},
  );
}
