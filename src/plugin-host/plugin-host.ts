/**
 * Sets plugins up. It accepts definitions, never paths: outside-plugin.ts decides what may become one. A plugin that
 * fails is reported and left out; the gateway keeps running.
 */
import type { Log } from '#contracts/log.ts';
import type { PluginCommand, PluginProviderFactory, PluginRoute } from '#contracts/plugin-parts.ts';
import type { SkillReader } from '#contracts/skill.ts';
import type { SettleCall, Tool, ToolRun } from '#contracts/tool.ts';
import type { WorkspaceReader, WorkspaceWriter } from '#contracts/workspace-reader.ts';
import type { Config } from '../config/config.ts';
import type { PluginChange } from '../config/live-settings.ts';
import type { Hooks } from '../hooks/hooks.ts';
import { unknownTools } from '../subagents/tool-policy.ts';
import { createContainment } from './containment.ts';
import { createOpener } from './open-plugin.ts';
import { createFindings, messageOf, type PluginReport } from './plugin-findings.ts';
import type { PluginParts, PluginServices, RegisteredChannel, Registration } from './plugin-scope.ts';
import { choosePlugins, type PluginChoice, type PluginEntry } from './replace-plugins.ts';
import { runSchedules } from './run-schedules.ts';
import { toolsOf } from './run-tools.ts';
import { type LoadedPlugin, namesOfTools } from './set-up-plugin.ts';
import { withinSetupTime } from './setup-time.ts';

/** Sets plugins up and offers their tools to runs. */
export interface PluginHost {
  /** Sets the plugins up in order. Never rejects: each plugin gets a report. Later calls add to earlier ones. */
  load(entries: readonly PluginEntry[]): Promise<readonly PluginReport[]>;
  /**
   * Replaces the plugins from outside by these. The new ones are set up first; then those that are gone or have changed
   * are out of force at once, and end after their running calls. Never rejects: returns what has changed or failed.
   */
  replace(entries: readonly PluginEntry[]): Promise<readonly PluginChange[]>;
  /** Returns the latest report of each plugin. */
  reports(): readonly PluginReport[];
  /** Resolves when the checks of the plugins loaded so far are over. Never rejects. */
  checked(): Promise<void>;
  /** Returns the tools of one run, in the order of the plugins and of their registration. */
  toolsFor(run: ToolRun): readonly Tool[];
  /** Returns the workspace reader provided by a plugin, if there is one. */
  workspaceReader(): WorkspaceReader | undefined;
  /** Returns what writes into workspaces, if a plugin provides it. */
  workspaceWriter(): WorkspaceWriter | undefined;
  /** Return what the plugins have registered besides tools, in their order. */
  commands(): readonly OwnedPart<PluginCommand>[];
  channels(): readonly OwnedPart<RegisteredChannel>[];
  provider(name: string): PluginProviderFactory | undefined;
  route(plugin: string, method: string, path: string): PluginRoute | undefined;
  /** Notes a fault of a plugin for the log, the status and `doctor`. */
  noteFault(plugin: string, what: string, error: unknown): void;
  /** Runs the disposers, last loaded first. Safe to call twice; a failing one is logged. */
  close(): Promise<void>;
}

export type PluginHostDeps = {
  readonly log: Log;
  readonly settle: SettleCall;
  readonly hooks: Pick<Hooks, 'on'>;
  /** Absent: no run has skills. */
  readonly skills?: SkillReader;
  /** Default: none. */
  readonly services?: PluginServices;
  /** The clock of the limits, ms. */
  now?(): number;
};

/** A part with the plugin that it belongs to. */
export type OwnedPart<Part> = { readonly plugin: string; readonly part: Part };

/** Creates a host without plugins; `load` adds them. */
export function createPluginHost({
  log,
  services = noServices,
  skills = noSkills,
  now = Date.now,
  ...deps
}: PluginHostDeps): PluginHost {
  const loaded: LoadedPlugin[] = [];
  const reports: OwnedReport[] = [];
  const findings = createFindings(log);
  const { containment, onFault, noteTool, attempt } = superviseCode({ log, findings });
  const { open, drop } = createOpener({ ...deps, log, services, skills, now, containment, onFault });
  const { retire, endAll } = createRetirement({ loaded, findings, drop });
  const begin = (one: LoadedPlugin) => beginPlugin(one, { log, findings, attempt });
  let isClosed = false;

  async function load(entry: PluginEntry): Promise<PluginReport> {
    if ('problem' in entry) return failed(entry, log);
    const outcome = await open(entry, loaded);
    if ('problem' in outcome) return failed({ plugin: entry.definition.id, ...outcome }, log);
    loaded.push(outcome);
    begin(outcome);
    return reportOf(outcome);
  }

  async function replace(entries: readonly PluginEntry[]): Promise<readonly PluginChange[]> {
    const choices = await choosePlugins(entries, { loaded, open, retire, drop });
    const next = choices.flatMap(({ plugin }) => plugin ?? []);
    const added = next.filter((one) => !loaded.includes(one));
    if (isClosed) {
      await Promise.all(added.map(drop));
      return [];
    }
    for (const one of loaded.filter((each) => !next.includes(each))) void retire(one);
    loaded.splice(0, loaded.length, ...next);
    for (const one of added) begin(one);
    const own = reports.filter(({ isOutside }) => !isOutside);
    reports.splice(0, reports.length, ...own, ...choices.flatMap((choice) => outsideReport(choice, log)));
    return choices.flatMap(({ change }) => change ?? []);
  }

  return {
    async load(entries) {
      const from = reports.length;
      for (const entry of entries) reports.push({ report: await load(entry), isOutside: isOutside(entry) });
      return reports.slice(from).map(({ report }) => report);
    },
    replace,
    reports: () => reports.map(({ report }) => findings.addFinding(report)),
    checked: findings.ended,
    toolsFor: (run) =>
      loaded
        .filter(({ plugin }) => !findings.withholds(plugin))
        .flatMap((one) => toolsOf(one, run, noteTool)),
    ...finders(loaded),
    noteFault: onFault,
    async close() {
      isClosed = true;
      await endAll();
      containment.close();
    },
  };
}

function isOutside(entry: PluginEntry): boolean {
  return 'problem' in entry || entry.isOutside === true;
}

type OwnedReport = { readonly report: PluginReport; readonly isOutside: boolean };

function failed(
  { plugin, problem }: { readonly plugin: string; readonly problem: string },
  log: Log,
): PluginReport {
  log.error({ plugin, problem }, 'plugin.failed');
  return { kind: 'failed', plugin, problem };
}

function outsideReport({ plugin, change }: PluginChoice, log: Log): readonly OwnedReport[] {
  if (plugin?.entry.isOutside) return [{ report: reportOf(plugin, change), isOutside: true }];
  return change?.kind === 'failed' ? [{ report: failed(change, log), isOutside: true }] : [];
}

function reportOf({ plugin, parts }: LoadedPlugin, change?: PluginChange): PluginReport {
  const report = { kind: 'loaded', plugin, tools: namesOfTools(parts) } as const;
  if (change?.kind !== 'waiting') return report;
  return { ...report, finding: { result: 'warning', detail: change.problem, fix: 'restart Parley' } };
}

type BeginDeps = {
  readonly log: Log;
  readonly findings: ReturnType<typeof createFindings>;
  attempt(plugin: string, what: string, work: () => Promise<void>): Promise<void>;
};

/** Puts a plugin's parts into force. */
function beginPlugin(one: LoadedPlugin, { log, findings, attempt }: BeginDeps): void {
  const { plugin, parts, check, withdrawn } = one;
  one.begin();
  if (check !== undefined) findings.begin(plugin, check);
  runSchedules(
    parts.schedules,
    ({ name, handler }, signal) => attempt(plugin, `schedule "${name}"`, async () => handler(signal)),
    withdrawn,
  );
  log.debug({ plugin, tools: namesOfTools(parts) }, 'plugin.loaded');
}

/** A plugin may be called for this long after it was changed or removed, ms: as long as the longest run by default. */
const longestCallMs = 600_000;

type RetirementDeps = {
  readonly loaded: LoadedPlugin[];
  readonly findings: ReturnType<typeof createFindings>;
  drop(plugin: LoadedPlugin): Promise<void>;
};

function createRetirement({ loaded, findings, drop }: RetirementDeps) {
  const retiring = new Set<Promise<void>>();
  const closing = Promise.withResolvers<void>();
  return {
    /** Takes a plugin out of force at once, and ends it after its running calls. */
    retire: (one: LoadedPlugin): Promise<void> => {
      const index = loaded.indexOf(one);
      if (index >= 0) loaded.splice(index, 1);
      one.withdraw();
      findings.forget(one.plugin);
      const ending = withinSetupTime(Promise.race([one.code.idle(), closing.promise]), longestCallMs)
        .then(() => drop(one))
        .finally(() => retiring.delete(ending));
      retiring.add(ending);
      return ending;
    },
    /** Ends every plugin, last loaded first, without waiting for calls. */
    endAll: async () => {
      closing.resolve();
      await Promise.all(retiring);
      for (const one of loaded.splice(0).reverse()) await drop(one);
    },
  };
}

const noSkills: SkillReader = {
  read: async ({ name }) => {
    throw new Error(`there is no skill ${name}`);
  },
  environmentOf: () => ({}),
};

/** Runs the plugins' code, and notes their faults. */
function superviseCode({
  log,
  findings,
}: {
  readonly log: Log;
  readonly findings: ReturnType<typeof createFindings>;
}) {
  const onFault = (plugin: string, what: string, error: unknown) => {
    const problem = messageOf(error);
    if (findings.addFault(plugin, `${what}: ${problem}`))
      log.error({ plugin, what, problem }, 'plugin.code-failed');
  };
  const containment = createContainment((plugin, error) => onFault(plugin, 'a timer or promise', error));
  return {
    ...{ containment, onFault },
    /** Runs code whose fault is nobody else's. */
    attempt: async (plugin: string, what: string, work: () => Promise<void>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        onFault(plugin, what, error);
      }
    },
    noteTool: ({ plugin, name }: Registration, runId: string, error: unknown) => {
      const problem = messageOf(error);
      log.error({ plugin, tool: name, runId, problem }, 'plugin.tool-failed');
      findings.addFault(plugin, `tool "${name}": ${problem}`);
    },
  };
}

/** Returns the parts of one kind, in the order of the plugins. */
function partsOf<Part>(
  loaded: readonly LoadedPlugin[],
  pick: (parts: PluginParts) => readonly Part[],
): readonly OwnedPart<Part>[] {
  return loaded.flatMap(({ plugin, parts }) => pick(parts).map((part) => ({ plugin, part })));
}

function finders(
  loaded: readonly LoadedPlugin[],
): Pick<PluginHost, 'commands' | 'channels' | 'provider' | 'route' | 'workspaceReader' | 'workspaceWriter'> {
  return {
    workspaceReader: () => loaded.find(({ parts }) => parts.reader)?.parts.reader,
    workspaceWriter: () => loaded.find(({ parts }) => parts.writer)?.parts.writer,
    commands: () => partsOf(loaded, ({ commands }) => commands),
    channels: () => partsOf(loaded, ({ channels }) => channels),
    provider: (name) =>
      partsOf(loaded, ({ providers }) => providers).find(({ part }) => part.name === name)?.part.create,
    route: (plugin, method, path) =>
      partsOf(loaded, ({ routes }) => routes).find(
        (one) => one.plugin === plugin && one.part.method === method && one.part.path === path,
      )?.part,
  };
}

/** For a host without a store and agents, as in tests of tools. */
const noServices: PluginServices = () => {
  const refuse = () => Promise.reject(new Error('this process has no agents'));
  const nothing = async function* () {};
  return {
    store: { get: refuse, list: refuse, commit: refuse },
    agent: {
      ...{ send: refuse, wait: refuse, steer: refuse, cancel: refuse },
      ...{ isSessionBusy: refuse, isBusy: refuse, isStreaming: refuse },
      ...{ events: nothing, run: nothing, summarize: nothing },
    },
    enqueue: refuse,
  };
};

/** Logs tools that agents' lists name but no plugin provides. */
export function logUnknownTools(
  { config, log }: { readonly config: Config; readonly log: Log },
  reports: readonly PluginReport[],
): void {
  const known = reports.flatMap((report) => (report.kind === 'loaded' ? report.tools : []));
  for (const unknown of unknownTools(config.agents, known)) log.warn(unknown, 'tool.not-found');
}
