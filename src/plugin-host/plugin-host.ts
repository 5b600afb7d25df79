/**
 * Loads only the plugins that main.ts lists: it accepts definitions, never paths, so nothing in a workspace can become
 * a plugin. A plugin that fails is reported and left out; the gateway keeps running.
 */
import { z } from 'zod';
import type { Log } from '#contracts/log.ts';
import type { Disposer, PluginApi, PluginDefinition, PluginFinding } from '#contracts/plugin.ts';
import type { SkillReader } from '#contracts/skill.ts';
import type { SettleCall, Tool, ToolFactory, ToolRun } from '#contracts/tool.ts';
import type { WorkspaceReader } from '#contracts/workspace-reader.ts';
import type { Config } from '../config/config.ts';
import type { Hooks } from '../hooks/hooks.ts';
import { workspaceDisks } from '../processes/disk-gate.ts';
import { unknownTools } from '../subagents/tool-policy.ts';
import { setupTimeMs, withinSetupTime } from './setup-time.ts';

/** A plugin and its section of the configuration, not yet checked; or one that couldn't be loaded, and why. */
export type PluginEntry = LoadedDefinition | { readonly plugin: string; readonly problem: string };

export type LoadedDefinition = { readonly definition: PluginDefinition; readonly config: unknown };

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

/** Sets plugins up and offers their tools to runs. */
export interface PluginHost {
  /** Sets the plugins up in order. Never rejects: each plugin gets a report. Later calls add to earlier ones. */
  load(entries: readonly PluginEntry[]): Promise<readonly PluginReport[]>;
  /** Returns the latest report of each plugin. */
  reports(): readonly PluginReport[];
  /** Resolves when the checks of the plugins loaded so far are over. Never rejects. */
  checked(): Promise<void>;
  /** Returns the tools of one run, in the order of the plugins and of their registration. */
  toolsFor(run: ToolRun): readonly Tool[];
  /** Returns the workspace reader provided by a plugin, if there is one. */
  workspaceReader(): WorkspaceReader | undefined;
  /** Runs the disposers, last loaded first. Safe to call twice; a failing one is logged. */
  close(): Promise<void>;
}

export type PluginHostDeps = {
  readonly log: Log;
  readonly settle: SettleCall;
  readonly hooks: Pick<Hooks, 'on'>;
  /** Absent: no run has skills. */
  readonly skills?: SkillReader;
};

/** Creates a host without plugins; `load` adds them. */
export function createPluginHost({ log, settle, hooks, skills = noSkills }: PluginHostDeps): PluginHost {
  // A Map keeps the order of registration, which is the order of the tools.
  const tools = new Map<string, Registration>();
  const loaded: LoadedPlugin[] = [];
  const reports: PluginReport[] = [];
  const checks = createChecks(log);

  async function load(entry: PluginEntry): Promise<PluginReport> {
    if ('problem' in entry) return failed(entry.plugin, entry.problem);
    const plugin = entry.definition.id;
    const outcome = await setUp(entry, { log: log.child({ plugin }), settle, hooks, skills });
    if (outcome.kind === 'failed') return failed(plugin, outcome.problem);
    const problem = findConflict(outcome, { tools, loaded });
    if (problem !== undefined) {
      await disposeOf(outcome, log);
      return failed(plugin, problem);
    }
    for (const registration of outcome.registrations) tools.set(registration.name, registration);
    loaded.push(outcome);
    const names = outcome.registrations.map(({ name }) => name);
    log.debug({ plugin, tools: names }, 'plugin.loaded');
    if (outcome.check !== undefined) checks.begin(plugin, outcome.check);
    return { kind: 'loaded', plugin, tools: names };
  }

  function failed(plugin: string, problem: string): PluginReport {
    log.error({ plugin, problem }, 'plugin.failed');
    return { kind: 'failed', plugin, problem };
  }

  return {
    async load(entries) {
      const from = reports.length;
      for (const entry of entries) reports.push(await load(entry));
      return reports.slice(from);
    },
    reports: () => reports.map(checks.addFinding),
    checked: checks.ended,
    workspaceReader: () => loaded.find(({ reader }) => reader)?.reader,
    toolsFor: (run) =>
      [...tools.values()]
        .filter(({ plugin }) => !checks.withholds(plugin))
        .flatMap((registration) => toolOf(registration, run, log)),
    async close() {
      tools.clear();
      for (const plugin of loaded.splice(0).reverse()) await disposeOf(plugin, log);
    },
  };
}

const noSkills: SkillReader = {
  read: async ({ name }) => {
    throw new Error(`there is no skill ${name}`);
  },
  environmentOf: () => ({}),
};

type Check = () => Promise<PluginFinding | undefined>;

/** Runs the plugins' checks beside the start. */
function createChecks(log: Log) {
  const findings = new Map<string, PluginFinding>();
  const running = new Map<string, Promise<void>>();
  const ended = new Set<string>();
  const run = async (plugin: string, check: Check) => {
    const fail = (error: unknown) => ({ result: 'failed', detail: messageOf(error) }) as const;
    const finding = await check().catch(fail);
    ended.add(plugin);
    if (finding === undefined) return;
    findings.set(plugin, finding);
    if (finding.result !== 'ok') log.warn({ plugin, ...finding }, 'plugin.checked');
  };
  return {
    begin: (plugin: string, check: Check) => void running.set(plugin, run(plugin, check)),
    ended: async () => void (await Promise.all(running.values())),
    /** Says whether no run gets the plugin's tools: its check has failed, or isn't over. */
    withholds: (plugin: string) =>
      running.has(plugin) && (!ended.has(plugin) || findings.get(plugin)?.result === 'failed'),
    addFinding: (report: PluginReport): PluginReport => {
      const finding = findings.get(report.plugin);
      return finding === undefined || report.kind === 'failed' ? report : { ...report, finding };
    },
  };
}

type Registration = { readonly plugin: string; readonly name: string; readonly factory: ToolFactory };
type LoadedPlugin = {
  readonly plugin: string;
  /** Remove its hooks. */
  readonly removals: readonly (() => void)[];
  readonly dispose: Disposer;
  readonly reader: WorkspaceReader | undefined;
  readonly check: Check | undefined;
};
type SetUp =
  | (LoadedPlugin & { readonly kind: 'ready'; readonly registrations: readonly Registration[] })
  | { readonly kind: 'failed'; readonly problem: string };

/** Checks the plugin's configuration against its own schema, then runs its setup. */
async function setUp(
  { definition, config }: LoadedDefinition,
  { log, settle, hooks, skills }: Required<PluginHostDeps>,
): Promise<SetUp> {
  const plugin = definition.id;
  const parsed = parseConfig(definition, config);
  if ('problem' in parsed) return { kind: 'failed', problem: parsed.problem };
  const registrations: Registration[] = [];
  const removals: (() => void)[] = [];
  let reader: WorkspaceReader | undefined;
  let isSettingUp = true;
  const api: PluginApi = {
    disks: workspaceDisks,
    log,
    settle,
    hooks: {
      on(name, handler, options) {
        if (!isSettingUp) throw new Error(`hook "${name}" was registered after setup; do it in setup`);
        removals.push(hooks.on(name, handler, { ...options, owner: plugin }));
      },
    },
    skills,
    workspaces: {
      serve(served) {
        reader = served;
      },
    },
    tools: {
      register(name, factory) {
        if (!isSettingUp) throw new Error(`tool "${name}" was registered after setup; do it in setup`);
        registrations.push({ plugin, name, factory });
      },
    },
  };
  try {
    const setting = Promise.resolve(definition.setup(api, parsed.data));
    const dispose = await withinSetupTime(setting);
    if (dispose === 'late') {
      for (const remove of removals) remove();
      // Should it end after all, what it has opened is released.
      setting
        .then((late) => late())
        .catch((error) => log.debug({ plugin, error }, 'plugin.late-setup-failed'));
      return { kind: 'failed', problem: `Plugin "${plugin}" didn't start within ${setupTimeMs / 1000} s.` };
    }
    const check = definition.check && (async () => definition.check?.(api, parsed.data));
    return { kind: 'ready', plugin, registrations, removals, dispose, reader, check };
  } catch (error) {
    for (const remove of removals) remove();
    return { kind: 'failed', problem: `Plugin "${plugin}" didn't start: ${messageOf(error)}` };
  } finally {
    isSettingUp = false;
  }
}

/** Parses a plugin's settings with its own schema, which may be wrong itself. */
function parseConfig(
  { id, configSchema }: PluginDefinition,
  config: unknown,
): { readonly data: unknown } | { readonly problem: string } {
  try {
    const { data, error } = configSchema.safeParse(config);
    if (error === undefined) return { data };
    return { problem: `The configuration of plugin "${id}" isn't valid: ${z.prettifyError(error)}` };
  } catch (error) {
    return { problem: `The configuration of plugin "${id}" can't be checked: ${messageOf(error)}` };
  }
}

/** Finds two plugins with the same id, or two tools with the same name, which the model couldn't tell apart. */
function findConflict(
  candidate: LoadedPlugin & { readonly registrations: readonly Registration[] },
  present: { readonly tools: ReadonlyMap<string, Registration>; readonly loaded: readonly LoadedPlugin[] },
): string | undefined {
  const { plugin, registrations } = candidate;
  if (present.loaded.some((other) => other.plugin === plugin)) return `Plugin "${plugin}" is listed twice.`;
  const owners = new Map([...present.tools.values()].map((tool) => [tool.name, tool.plugin]));
  for (const { name } of registrations) {
    const owner = owners.get(name);
    if (owner !== undefined) {
      return `Tool "${name}" comes from plugin "${owner}" and plugin "${plugin}". Turn one of them off.`;
    }
    owners.set(name, plugin);
  }
  return undefined;
}

/** Creates a tool for the run. A factory that fails only costs its tool, not the run. */
function toolOf({ plugin, name, factory }: Registration, run: ToolRun, log: Log): readonly Tool[] {
  try {
    const tool = factory(run);
    if (tool === undefined) return [];
    if (tool.name !== name) throw new Error(`its tool is named "${tool.name}", not "${name}" as registered`);
    return [tool];
  } catch (error) {
    log.error({ plugin, tool: name, runId: run.runId, problem: messageOf(error) }, 'plugin.tool-failed');
    return [];
  }
}

async function disposeOf({ plugin, removals, dispose }: LoadedPlugin, log: Log): Promise<void> {
  for (const remove of removals) remove();
  try {
    await dispose();
  } catch (error) {
    log.error({ plugin, problem: messageOf(error) }, 'plugin.dispose-failed');
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Logs tools that agents' lists name but no plugin provides. */
export function logUnknownTools(
  { config, log }: { readonly config: Config; readonly log: Log },
  reports: readonly PluginReport[],
): void {
  const known = reports.flatMap((report) => (report.kind === 'loaded' ? report.tools : []));
  for (const unknown of unknownTools(config.agents, known)) log.warn(unknown, 'tool.not-found');
}
