/**
 * Sets plugins up. It accepts definitions, never paths: outside-plugin.ts decides what may become one. A plugin that
 * fails is reported and left out; the gateway keeps running.
 */
import { z } from 'zod';
import type { Log } from '#contracts/log.ts';
import type { Disposer, PluginDefinition, PluginFinding } from '#contracts/plugin.ts';
import type { PluginCommand, PluginProviderFactory, PluginRoute } from '#contracts/plugin-parts.ts';
import type { SkillReader } from '#contracts/skill.ts';
import type { SettleCall, Tool, ToolRun } from '#contracts/tool.ts';
import type { WorkspaceReader } from '#contracts/workspace-reader.ts';
import { isOwnCommand } from '../commands/list.ts';
import type { Config } from '../config/config.ts';
import type { Hooks } from '../hooks/hooks.ts';
import { unknownTools } from '../subagents/tool-policy.ts';
import { type Containment, createContainment } from './containment.ts';
import { limitLog } from './limited-log.ts';
import {
  createPluginScope,
  type PluginParts,
  type PluginScope,
  type PluginServices,
  type RegisteredChannel,
  type Registration,
} from './plugin-scope.ts';
import { runSchedules } from './run-schedules.ts';
import { setupTimeMs, withinSetupTime } from './setup-time.ts';

/** A plugin and its section of the configuration, not yet checked; or one that couldn't be loaded, and why. */
export type PluginEntry = LoadedDefinition | { readonly plugin: string; readonly problem: string };

export type LoadedDefinition = {
  readonly definition: PluginDefinition;
  readonly config: unknown;
  /** It doesn't come with Parley: its log is limited, and what it leaves running is contained. */
  readonly isOutside?: true;
};

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
  /** Return what the plugins have registered besides tools, in their order. */
  commands(): readonly OwnedPart<PluginCommand>[];
  channels(): readonly OwnedPart<RegisteredChannel>[];
  provider(name: string): PluginProviderFactory | undefined;
  route(plugin: string, method: string, path: string): PluginRoute | undefined;
  /** Runs a plugin's code, so that what it starts belongs to it. Throws what the code throws. */
  runAs<T>(plugin: string, work: () => T): T;
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
  const reports: PluginReport[] = [];
  const checks = createChecks(log);
  const { containment, onFault, noteTool, attempt, runAs } = superviseCode({ log, loaded, checks });

  async function load(entry: PluginEntry): Promise<PluginReport> {
    if ('problem' in entry) return failed(entry.plugin, entry.problem);
    const plugin = entry.definition.id;
    if (entry.isOutside) containment.watch();
    const onFlood = () => onFault(plugin, 'its log', 'more than 120 lines in a minute; the rest is dropped');
    const own = entry.isOutside ? limitLog(log.child({ plugin }), now, onFlood) : log.child({ plugin });
    const scope = createPluginScope(plugin, { ...deps, services, skills, log: own });
    const outcome = await setUp(entry, scope, containment);
    const problem = 'problem' in outcome ? outcome.problem : findConflict(scope, loaded);
    if (problem !== undefined || 'problem' in outcome) {
      await end(scope, 'dispose' in outcome ? outcome.dispose : undefined, { containment, log });
      return failed(plugin, problem ?? '');
    }
    loaded.push(outcome);
    const names = namesOfTools(outcome.parts);
    log.debug({ plugin, tools: names }, 'plugin.loaded');
    if (outcome.check !== undefined) checks.begin(plugin, outcome.check);
    runSchedules(
      outcome.parts.schedules,
      ({ name, handler }, signal) => attempt(plugin, `schedule "${name}"`, async () => handler(signal)),
      outcome.api.signal,
    );
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
    workspaceReader: () => loaded.find(({ parts }) => parts.reader)?.parts.reader,
    toolsFor: (run) =>
      partsOf(loaded, ({ tools }) => tools)
        .filter(({ plugin }) => !checks.withholds(plugin))
        .flatMap(({ plugin, part }) => runAs(plugin, () => toolOf(part, run, noteTool))),
    ...finders(loaded),
    runAs,
    noteFault: onFault,
    async close() {
      for (const plugin of loaded.splice(0).reverse())
        await end(plugin, plugin.dispose, { containment, log });
      containment.close();
    },
  };
}

const noSkills: SkillReader = {
  read: async ({ name }) => {
    throw new Error(`there is no skill ${name}`);
  },
  environmentOf: () => ({}),
};

type SupervisionDeps = {
  readonly log: Log;
  readonly loaded: readonly LoadedPlugin[];
  readonly checks: ReturnType<typeof createChecks>;
};

/** Runs the plugins' code, and notes their faults. */
function superviseCode({ log, loaded, checks }: SupervisionDeps) {
  const onFault = (plugin: string, what: string, error: unknown) => {
    const problem = messageOf(error);
    if (checks.addFault(plugin, `${what}: ${problem}`))
      log.error({ plugin, what, problem }, 'plugin.code-failed');
  };
  const containment = createContainment((plugin, error) => onFault(plugin, 'a timer or promise', error));
  const runAs = <T>(plugin: string, work: () => T): T => {
    const owner = loaded.find((one) => one.owner.plugin === plugin)?.owner;
    return owner === undefined ? work() : containment.run(owner, work);
  };
  return {
    ...{ containment, onFault, runAs },
    /** Runs code whose fault is nobody else's. */
    attempt: async (plugin: string, what: string, work: () => Promise<void>): Promise<void> => {
      try {
        await runAs(plugin, work);
      } catch (error) {
        onFault(plugin, what, error);
      }
    },
    noteTool: ({ plugin, name }: Registration, runId: string, error: unknown) => {
      const problem = messageOf(error);
      log.error({ plugin, tool: name, runId, problem }, 'plugin.tool-failed');
      checks.addFault(plugin, `tool "${name}": ${problem}`);
    },
  };
}

/** Ends what a plugin has begun. */
async function end(
  scope: PluginScope,
  dispose: Disposer | undefined,
  { containment, log }: { readonly containment: Containment; readonly log: Log },
): Promise<void> {
  const { plugin } = scope.owner;
  scope.end();
  try {
    await containment.run(scope.owner, async () => withinSetupTime(dispose?.()));
  } catch (error) {
    log.error({ plugin, problem: messageOf(error) }, 'plugin.dispose-failed');
  }
  const timers = containment.stopTimers(scope.owner);
  if (timers > 0) log.warn({ plugin, timers }, 'plugin.timers-stopped');
}

/** Returns the parts of one kind, in the order of the plugins. */
function partsOf<Part>(
  loaded: readonly LoadedPlugin[],
  pick: (parts: PluginParts) => readonly Part[],
): readonly OwnedPart<Part>[] {
  return loaded.flatMap(({ owner: { plugin }, parts }) => pick(parts).map((part) => ({ plugin, part })));
}

function finders(
  loaded: readonly LoadedPlugin[],
): Pick<PluginHost, 'commands' | 'channels' | 'provider' | 'route'> {
  return {
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
  return {
    store: { get: refuse, list: refuse, commit: refuse },
    agent: {
      ...{ send: refuse, wait: refuse, steer: refuse, cancel: refuse, isSessionBusy: refuse },
      events: async function* () {},
    },
    enqueue: refuse,
  };
};

type Check = () => Promise<PluginFinding | undefined>;

/** Runs the plugins' checks beside the start. */
function createChecks(log: Log) {
  const findings = new Map<string, PluginFinding>();
  const running = new Map<string, Promise<void>>();
  const ended = new Set<string>();
  const faults = new Map<string, number>();
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

type LoadedPlugin = PluginScope & { readonly dispose: Disposer; readonly check: Check | undefined };
type SetUp = LoadedPlugin | { readonly problem: string };

/** Checks the plugin's configuration against its own schema, then runs its setup. */
async function setUp(
  { definition, config }: LoadedDefinition,
  scope: PluginScope,
  containment: Containment,
): Promise<SetUp> {
  const plugin = definition.id;
  const parsed = parseConfig(definition, config);
  if ('problem' in parsed) return { problem: parsed.problem };
  const { api, owner } = scope;
  try {
    const setting = containment.run(owner, async () => definition.setup(api, parsed.data));
    const dispose = await withinSetupTime(setting);
    if (dispose === 'late') {
      // Should it end after all, what it has opened is released.
      setting.then((late) => late?.()).catch(() => undefined);
      return { problem: `Plugin "${plugin}" didn't start within ${setupTimeMs / 1000} s.` };
    }
    const check = definition.check && (async () => definition.check?.(api, parsed.data));
    return { ...scope, dispose: typeof dispose === 'function' ? dispose : () => undefined, check };
  } catch (error) {
    return { problem: `Plugin "${plugin}" didn't start: ${messageOf(error)}` };
  } finally {
    scope.endSetup();
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

/** Finds a name that two plugins, or a plugin and Parley, would share. */
function findConflict({ owner, parts }: PluginScope, loaded: readonly LoadedPlugin[]): string | undefined {
  const { plugin } = owner;
  if (loaded.some((other) => other.owner.plugin === plugin)) return `Plugin "${plugin}" is listed twice.`;
  const kinds = [
    ['Tool', namesOfTools],
    ['Command', namesOfCommands],
    ['Provider', namesOfProviders],
  ] as const;
  for (const [kind, namesIn] of kinds) {
    const owners = new Map(
      loaded.flatMap((other) => namesIn(other.parts).map((name) => [name, other.owner.plugin])),
    );
    for (const name of namesIn(parts)) {
      if (kind === 'Command' && isOwnCommand(name))
        return `Command "${name}" of plugin "${plugin}" is one of Parley's own. Name it otherwise.`;
      const other = owners.get(name);
      if (other !== undefined)
        return `${kind} "${name}" comes from plugin "${other}" and plugin "${plugin}". Turn one of them off.`;
      owners.set(name, plugin);
    }
  }
  return undefined;
}

const namesOfTools = ({ tools }: PluginParts) => tools.map(({ name }) => name);
const namesOfCommands = ({ commands }: PluginParts) => commands.map(({ name }) => name);
const namesOfProviders = ({ providers }: PluginParts) => providers.map(({ name }) => name);

/** Creates a tool for the run. A factory that fails only costs its tool, not the run. */
function toolOf(
  registration: Registration,
  run: ToolRun,
  onFault: (registration: Registration, runId: string, error: unknown) => void,
): readonly Tool[] {
  const { name, factory } = registration;
  try {
    const tool = factory(run);
    if (tool === undefined) return [];
    if (tool.name !== name) throw new Error(`its tool is named "${tool.name}", not "${name}" as registered`);
    assertTool(tool);
    return [tool];
  } catch (error) {
    onFault(registration, run.runId, error);
    return [];
  }
}

/** Schemas that are known to become JSON Schema, which every request contains. */
const fitSchemas = new WeakSet<object>();

function assertTool({ description, inputSchema, execute, replay, authority }: Tool): void {
  if (typeof description !== 'string' || typeof execute !== 'function')
    throw new Error('it needs a description and a function execute');
  if (!['safe', 'never', 'durable'].includes(replay)) throw new Error('replay is safe, never or durable');
  if (!['owner', 'member', 'guest'].includes(authority))
    throw new Error('authority is owner, member or guest');
  if (typeof inputSchema?.safeParse !== 'function') throw new Error("its inputSchema isn't a zod schema");
  if (fitSchemas.has(inputSchema)) return;
  z.toJSONSchema(inputSchema, { io: 'input' });
  fitSchemas.add(inputSchema);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
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

/** Logs tools that agents' lists name but no plugin provides. */
export function logUnknownTools(
  { config, log }: { readonly config: Config; readonly log: Log },
  reports: readonly PluginReport[],
): void {
  const known = reports.flatMap((report) => (report.kind === 'loaded' ? report.tools : []));
  for (const unknown of unknownTools(config.agents, known)) log.warn(unknown, 'tool.not-found');
}
