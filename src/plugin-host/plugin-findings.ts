/** Runs the plugins' checks, and remembers what is wrong with each plugin. */
import type { Log } from '#contracts/log.ts';
import type { PluginFinding } from '#contracts/plugin.ts';

/** The result of loading a plugin. */
export type PluginReport =
  | {
      readonly kind: 'loaded';
      readonly plugin: string;
      readonly tools: readonly string[];
      /** Result of its check; absent until that is over, and if it has none. */
      readonly finding?: PluginFinding;
    }
  /** `problem` is a sentence for the owner and contains no secrets. */
  | { readonly kind: 'failed'; readonly plugin: string; readonly problem: string };

/** A plugin's own check; undefined if it needs nothing. */
export type Check = () => Promise<PluginFinding | undefined>;

/** Creates a list without findings. */
export function createFindings(log: Log) {
  const findings = new Map<string, PluginFinding>();
  const checks = new Map<string, Check>();
  const running = new Map<string, Promise<void>>();
  const ended = new Set<string>();
  const faults = new Map<string, number>();
  const run = async (plugin: string, check: Check) => {
    const fail = (error: unknown) => ({ result: 'failed', detail: messageOf(error) }) as const;
    const finding = await check().catch(fail);
    // It may have been replaced meanwhile.
    if (checks.get(plugin) !== check) return;
    ended.add(plugin);
    if (finding === undefined) return;
    findings.set(plugin, finding);
    if (finding.result !== 'ok') log.warn({ plugin, ...finding }, 'plugin.checked');
  };
  return {
    begin: (plugin: string, check: Check) => {
      checks.set(plugin, check);
      running.set(plugin, run(plugin, check));
    },
    /** Forgets everything about a plugin that has been replaced or removed. */
    forget: (plugin: string) => {
      for (const facts of [findings, checks, running, faults]) facts.delete(plugin);
      ended.delete(plugin);
    },
    warn: (plugin: string, finding: Omit<PluginFinding, 'result'>) =>
      void findings.set(plugin, { result: 'warning', ...finding }),
    ended: async () => void (await Promise.all(running.values())),
    /** Says whether no run gets the plugin's tools: its check has failed, or isn't over. */
    withholds: (plugin: string) =>
      running.has(plugin) && (!ended.has(plugin) || findings.get(plugin)?.result === 'failed'),
    /** Counts a fault; true for one that is worth a line of the log: the first ten, then each hundredth. */
    addFault: (plugin: string, detail: string): boolean => {
      const count = (faults.get(plugin) ?? 0) + 1;
      faults.set(plugin, count);
      const shown = `${count} ${count === 1 ? 'fault' : 'faults'}; the last in ${detail.slice(0, 300)}`;
      if (findings.get(plugin)?.result !== 'failed')
        findings.set(plugin, { result: 'warning', detail: shown, fix: 'see its log lines' });
      return count <= 10 || count % 100 === 0;
    },
    addFinding: (report: PluginReport): PluginReport => {
      const finding = findings.get(report.plugin);
      return finding === undefined || report.kind === 'failed' ? report : { ...report, finding };
    },
  };
}

/** Returns what is wrong with plugins, for the page and the status. */
export function pluginProblems(
  reports: readonly PluginReport[],
): readonly { readonly id: string; readonly text: string }[] {
  return reports.flatMap((report) => {
    const id = `plugin ${report.plugin}`;
    if (report.kind === 'failed') return [{ id, text: `${id}: ${report.problem}` }];
    const { finding } = report;
    return finding === undefined || finding.result === 'ok' ? [] : [{ id, text: `${id}: ${finding.detail}` }];
  });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the line of a plugin's file that an error names first, as ` (index.ts:7)`; empty if it names none. */
export function placeOf(error: unknown): string {
  const stack = error instanceof Error ? `${error.stack}` : '';
  // The module guard marks addresses of plugins' files. Node.js begins with the place if it can't parse TypeScript.
  const [, file, line] =
    /\/([^/\s?]+)\?\d+-sha256-[0-9a-f]+:(\d+)/.exec(stack) ?? /^\/.*\/([^/\n]+):(\d+)\n/.exec(stack) ?? [];
  return file === undefined ? '' : ` (${file}:${line})`;
}
