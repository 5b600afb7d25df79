/** Which search service the settings name, and whether they suffice to ask it. */
import type { PluginFinding } from '#contracts/plugin.ts';
import type { WebConfig } from './config.ts';

/** The search services. */
const services = {
  searxng: { name: 'SearXNG', baseUrl: undefined, variable: undefined },
  brave: { name: 'Brave Search', baseUrl: 'https://api.search.brave.com', variable: 'BRAVE_API_KEY' },
  tavily: { name: 'Tavily', baseUrl: 'https://api.tavily.com', variable: 'TAVILY_API_KEY' },
} as const;

export type SearchService = {
  readonly backend: keyof typeof services;
  readonly name: string;
  /** Without a slash at the end. */
  readonly baseUrl: string;
  readonly key: string;
  /** The variable of the key. */
  readonly variable: string;
};

/** Returns the configured service; undefined if its address or key is missing. */
export function serviceOf({ search, searchKey: key = '' }: WebConfig): SearchService | undefined {
  if (search === undefined) return undefined;
  const { name, ...defaults } = services[search.backend];
  const { baseUrl = defaults.baseUrl, keyEnv: variable = defaults.variable ?? '' } = search;
  if (baseUrl === undefined || (key === '' && defaults.variable !== undefined)) return undefined;
  return { backend: search.backend, name, baseUrl: baseUrl.replace(/\/+$/, ''), key, variable };
}

/** Says for `doctor` whether there is a search, and how to get it. */
export function checkSearch(config: WebConfig): PluginFinding {
  const { search } = config;
  const service = serviceOf(config);
  if (service !== undefined)
    return { result: 'ok', detail: `web_fetch, and web_search through ${service.name}` };
  if (search === undefined)
    return {
      result: 'ok',
      detail:
        'web_fetch; no web_search: set plugins.web.search to your SearXNG, Brave Search or Tavily to get it',
    };
  const { name, variable } = services[search.backend];
  return {
    result: 'warning',
    detail: `no web_search: ${name} needs ${variable === undefined ? 'its address' : 'a key'}`,
    fix:
      variable === undefined
        ? 'set plugins.web.search.baseUrl'
        : `set ${search.keyEnv ?? variable} in the environment, and restart Parley`,
  };
}
