import { setTimeout as delay } from 'node:timers/promises';
import { chatCommand } from '#channel-kit/own-commands.ts';
import type { ChannelEntry } from '#contracts/channel.ts';
import type { Log } from '#contracts/log.ts';
import type { PluginDefinition, PluginFinding } from '#contracts/plugin.ts';
import type { Config } from '../config/config.ts';
import { isInteractive, isJournaled } from '../config/environment.ts';
import type { PluginChange, ReloadResult } from '../config/live-settings.ts';
import { loadConfig } from '../config/load-config.ts';
import { settingsOfPlugin } from '../config/plugin-secrets.ts';
import { secretsOf } from '../config/secrets-of.ts';
import { bytesOf } from '../config/units.ts';
import { logPath, openLogFile } from '../logging/log-file.ts';
import { createLogger, type Logger } from '../logging/logger.ts';
import type { PluginEntry } from '../plugin-host/replace-plugins.ts';
import { keepCompiledCode } from '../processes/compiled-code.ts';
import { workspaceDisks } from '../processes/disk-gate.ts';
import { checkConfig, checkForStart } from './config-check.ts';
import type { ExitCode } from './exit-code.ts';
import { gcWhenIdle } from './gc-when-idle.ts';
import { createOutsideLoader } from './plugin-entries.ts';
import { createReloader, signalsOf } from './reload.ts';
import { settingsSources } from './settings-sources.ts';
import { readVersion } from './version.ts';

export type StartDeps = {
  readonly channels: readonly ChannelEntry[];
  readonly plugins: readonly { readonly id: string; load(): Promise<PluginDefinition> }[];
  /** Overrides the configured role. */
  readonly role?: Config['role'];
  startGateway(options: {
    readonly config: Config;
    readonly log: Log;
    readonly version: string;
    readonly channels: readonly ChannelEntry[];
    readonly plugins: readonly PluginEntry[];
    onSecret(value: string): void;
    redact(text: string): string;
    reload(): Promise<ReloadResult>;
  }): Promise<RunningGateway>;
};

/** A running gateway, as the process entry point sees it. */
export interface RunningGateway extends StatusTable {
  signInLink?(): string;
  /** Resolves once it runs; until then `waiting` says why it doesn't. */
  readonly started: Promise<void>;
  readonly settled: Promise<void>;
  readonly broken: Promise<void>;
  apply(config: Config, plugins: readonly PluginEntry[]): Promise<readonly PluginChange[]>;
  stop(): Promise<void>;
}

/** Runs the gateway until SIGINT or SIGTERM; resolves with the exit code once everything is released. */
export async function runStart({ channels, plugins, role, startGateway }: StartDeps): Promise<ExitCode> {
  const load = async (check: (loaded: Config) => Promise<void>): Promise<Config> => {
    const loaded = loadConfig();
    await check(loaded);
    return role === undefined ? loaded : { ...loaded, role };
  };
  // A part with invalid settings is reported by the stage that loads it.
  const config = await load((loaded) => checkForStart(loaded, channels));
  const logger = await openLog(config);
  const { log } = logger;
  const signals = signalsOf(isInteractive());
  const stopped = firstOf(signals.stop);
  let running: RunningGateway | undefined;
  let latest: { readonly config: Config; readonly plugins: readonly PluginEntry[] } | undefined;
  const loadOutside = createOutsideLoader();
  const apply = async (next: Config) => {
    latest = { config: next, plugins: await loadOutside(next) };
    for (const secret of secretsOf(next)) logger.redactor.add(secret);
    logger.setLevel(next.logLevel);
    return (await running?.apply(next, latest.plugins)) ?? [];
  };
  const loadAnew = () => load((loaded) => checkConfig(loaded, { channels, plugins }));
  const reload = createReloader({ config, log, disks: workspaceDisks, load: loadAnew, apply });
  for (const signal of signals.reload) process.on(signal, () => void reload());
  try {
    const starting = startGateway({
      reload,
      config,
      log,
      version: readVersion(),
      channels,
      plugins: [...(await loadOwn(plugins, config)), ...(await loadOutside(config))],
      onSecret: (value) => logger.redactor.add(value),
      redact: (text) => logger.redactor.redact(text),
    });
    const gateway = await unlessOverdue(starting, stopped, config.shutdownMs);
    if (gateway === undefined) return 0;
    running = gateway;
    // Settings reloaded during the start.
    if (latest !== undefined) void gateway.apply(latest.config, latest.plugins);
    await Promise.race([gateway.settled, stopped]);
    finishStart(gateway, config, log);
    const cause = await Promise.race([stopped, gateway.broken.then(() => 'store-broken' as const)]);
    log[cause === 'store-broken' ? 'error' : 'info']({ cause }, 'gateway.stop-requested');
    // The process supervisor then restarts it.
    return cause === 'store-broken' ? 1 : 0;
  } finally {
    // Also after a fault, since nothing else would stop it.
    if (running) await stopWithin(running, config.shutdownMs, log);
    await logger.close();
    // Otherwise, for example, a channel still starting would keep the process alive. Its exit code is set by then.
    setImmediate(() => process.exit());
  }
}

/** Opens the log: on standard output and, unless the settings or systemd make it needless, in the data folder. */
async function openLog(config: Config): Promise<Logger> {
  const { logLevel: level, logFile, dataDir } = config;
  const { enabled = !(await isJournaled()), maxMb } = logFile;
  const onFault = (error: unknown) => logger.log.warn({ error }, 'log.file-not-written');
  const file = enabled ? openLogFile(logPath(dataDir), { maxBytes: bytesOf(maxMb), onFault }) : undefined;
  const logger = await createLogger({ level, isPretty: isInteractive(), ...(file && { file }) });
  for (const secret of secretsOf(config)) logger.redactor.add(secret);
  return logger;
}

/** Resolves with undefined if the start isn't complete `ms` after a stop was requested. */
function unlessOverdue<T>(
  starting: Promise<T>,
  stopped: Promise<unknown>,
  ms: number,
): Promise<T | undefined> {
  const overdue = stopped.then(() => delay(ms, undefined, { ref: false }));
  return Promise.race([starting, overdue]);
}

/** Shows what is running; then, once idle, does the work that saves time or memory later. */
function finishStart(gateway: RunningGateway, config: Config, log: Log): void {
  const settings = settingsSources(config);
  const show = () => {
    // The only line of a start in the log file, which doesn't have the table.
    if (gateway.waiting() === undefined) log.info({ model: gateway.model.name }, 'gateway.started');
    showTable(gateway, settings);
  };
  show();
  if (gateway.waiting() !== undefined) void gateway.started.then(show);
  keepCode();
  void gcWhenIdle();
}

/** Shows the table; called again once the start is complete, with the sign-in link and the channels. */
function showTable(gateway: RunningGateway, settings: string): void {
  process.stdout.write(renderStatusTable(gateway, { signInLink: gateway.signInLink?.(), settings }));
}

/**
 * Writes the compile cache, which Node.js would only write at a regular exit, and a gateway may never have one.
 * Writes it twice: by the second time, the first answers have loaded the model's SDK and the Markdown parser.
 */
function keepCode(): void {
  keepCompiledCode();
  setTimeout(keepCompiledCode, 60_000).unref();
}

function firstOf(signals: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of signals) process.once(signal, resolve);
  });
}

/** Stops the gateway within `ms`. The next start finds and continues any work that wasn't released in time. */
async function stopWithin(gateway: RunningGateway, ms: number, log: Log): Promise<void> {
  const late = Promise.withResolvers<'late'>();
  const timer = setTimeout(late.resolve, ms, 'late' as const);
  const ended = await Promise.race([gateway.stop().then(() => 'stopped' as const), late.promise]);
  clearTimeout(timer);
  log.info({ ended }, 'gateway.stopped');
}

/** Loads Parley's own plugins that are on. */
async function loadOwn(plugins: StartDeps['plugins'], config: Config): Promise<readonly PluginEntry[]> {
  const on = plugins.filter(({ id }) => settingsOfPlugin(config, id).enabled !== false);
  const own = on.map(async ({ id, load }) => ({
    definition: await load(),
    config: settingsOfPlugin(config, id),
  }));
  return Promise.all(own);
}

type StatusTable = {
  /** Absent in a process without a page. */
  readonly url?: string;
  /** Where a phone on the same network finds the page; absent when it is only served to this machine. */
  readonly phoneUrl?: string;
  /** Where the process answers `/healthz`, `/readyz` and `/metrics`. */
  readonly healthUrl?: string;
  readonly model: { readonly name: string; readonly isDemo: boolean };
  channels(): readonly {
    readonly id: string;
    readonly state: { readonly kind: string; readonly account?: string; readonly reason?: string };
  }[];
  /** Returns why it hasn't started yet; undefined once it runs. */
  waiting(): string | undefined;
  plugins(): readonly {
    readonly kind: string;
    readonly plugin: string;
    readonly problem?: string;
    readonly finding?: PluginFinding;
  }[];
};

type TableDetails = {
  /** Absent in a process without a page. */
  readonly signInLink: string | undefined;
  /** Where the settings come from. */
  readonly settings: string;
};

/** Renders the table of `npm start`: the page, the settings files, the model, and which channels are on and why. */
export function renderStatusTable(status: StatusTable, { signInLink, settings }: TableDetails): string {
  const waiting = status.waiting();
  if (waiting !== undefined) {
    const page = status.url === undefined ? '' : `\n\n  page  ${status.url}`;
    return `\n  ${waiting}${page}\n\n`;
  }
  const page: readonly (readonly [string, string])[] =
    status.url === undefined || signInLink === undefined
      ? [
          ['page', 'none (worker)'],
          ...(status.healthUrl === undefined ? [] : [['health', `${status.healthUrl}/readyz`] as const]),
        ]
      : [
          ['page', status.url],
          ...(status.phoneUrl === undefined ? [] : [['on a phone', status.phoneUrl] as const]),
          ['sign in', `${signInLink} (works once, for 15 minutes)`],
          ['chat', chatCommand],
        ];
  const rows: readonly (readonly [string, string])[] = [
    ...page,
    ['settings', settings],
    [
      'model',
      status.model.isDemo
        ? 'demo (a script; set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real model)'
        : status.model.name,
    ],
    ...status.channels().map(({ id, state }) => [id, describe(state)] as const),
    ...status.plugins().flatMap(({ kind, plugin, problem, finding }) => {
      const text = kind === 'failed' ? (problem ?? 'failed') : troubleIn(finding);
      return text === undefined ? [] : [[`plugin ${plugin}`, text] as const];
    }),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
  return `\n  Parley is running.\n\n${lines.join('\n')}\n\n`;
}

function troubleIn(finding: PluginFinding | undefined): string | undefined {
  if (finding === undefined || finding.result === 'ok') return undefined;
  return finding.fix === undefined ? finding.detail : `${finding.detail}; ${finding.fix}`;
}

function describe(state: {
  readonly kind: string;
  readonly account?: string;
  readonly reason?: string;
}): string {
  const degraded = state.reason && `, degraded: ${state.reason}`;
  const detail = state.account === undefined ? state.reason : `${state.account}${degraded ?? ''}`;
  return detail === undefined ? state.kind : `${state.kind} (${detail})`;
}
