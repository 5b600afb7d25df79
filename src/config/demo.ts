import type { Config } from './config.ts';

/** The file that the demo model writes, once a person has approved it. */
export const demoNote = 'demo-note.md';

/** The file that the demo model writes in order to send it. */
export const demoFile = 'demo-file.md';

/** The page that the demo model reads, below this gateway's own address. */
export const demoPage = '/page/about.html';

/**
 * Lets the demo model show approvals and web pages without anything outside: it asks before it writes its note, and may
 * read this gateway's own pages. It is a script, so nobody's words can lead it to another file or address.
 */
export function withDemo(config: Config): Config {
  if (config.model !== 'demo') return config;
  const { web } = config.plugins;
  // The plugin checks its own settings.
  const written: readonly unknown[] = Array.isArray(web.allowHosts) ? web.allowHosts : [];
  const asks = { tool: 'write', match: { path: demoNote }, action: 'ask' } as const;
  return {
    ...config,
    agents: config.agents.map((agent) => ({
      ...agent,
      tools: { ...agent.tools, rules: [...(agent.tools.rules ?? []), asks] },
    })),
    plugins: {
      ...config.plugins,
      web: { ...web, allowHosts: [...written, `127.0.0.1:${config.port}`] },
    },
  };
}
