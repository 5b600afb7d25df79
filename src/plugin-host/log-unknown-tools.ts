import type { Log } from '#contracts/log.ts';
import type { Config } from '../config/config.ts';
import { unknownTools } from '../subagents/tool-policy.ts';
import type { PluginReport } from './plugin-host.ts';

/** Logs tools that agents' lists name but no plugin provides. Returns the reports. */
export function logUnknownTools(
  { config, log }: { readonly config: Config; readonly log: Log },
  reports: readonly PluginReport[],
): readonly PluginReport[] {
  const known = reports.flatMap((report) => (report.kind === 'loaded' ? report.tools : []));
  for (const unknown of unknownTools(config.agents, known)) log.warn(unknown, 'tool.not-found');
  return reports;
}
