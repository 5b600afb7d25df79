import { readFile } from 'node:fs/promises';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';
import type { Config } from '../config/config.ts';
import {
  compareSettings,
  describeReload,
  type PluginChange,
  type ReloadResult,
} from '../config/live-settings.ts';
import { loadConfig } from '../config/load-config.ts';
import { configError } from '../config/problem.ts';
import { reload } from '../operations/status.ts';
import { type ProcessAddress, readProcessAddresses } from '../processes/process-address.ts';
import { askGateway, askRunning, type RunningGateway, requireRunning } from './ask-gateway.ts';
import type { CommandOutput } from './print.ts';

/** Creates the function that reloads the configuration. An invalid file changes nothing. The function never rejects. */
export function createReloader(deps: {
  /** The configuration this process started with. */
  readonly config: Config;
  readonly log: Log;
  readonly disks: DiskCalls;
  /** Reads and checks the configuration again. Throws ParleyError `config_invalid`. */
  load(): Promise<Config>;
  apply(config: Config): Promise<readonly PluginChange[]>;
}): () => Promise<ReloadResult> {
  const { config, log, disks, load, apply } = deps;
  let before = config;
  const reload = async (): Promise<ReloadResult> => {
    try {
      await assertSettingsAnswer(config, disks);
      const written = await load();
      const after = withBindings(written, before, config.agents);
      const { applied } = compareSettings(before, after);
      // Compared with the start: a setting that needs a restart still needs it after the next reload.
      const waiting = compareSettings(config, after).needsRestart;
      const needsRestart = after === written ? waiting : [...waiting, 'bindings'];
      const plugins = await apply(after);
      before = after;
      log.info({ applied, needsRestart, plugins }, 'settings.reloaded');
      return { kind: 'applied', applied, needsRestart, plugins };
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      log.error({ problem }, 'settings.not-reloaded');
      return { kind: 'refused', problem };
    }
  };
  let last: Promise<unknown> = Promise.resolve();
  // One after another: if two ran at once, the one that read the older file could apply it last.
  return () => {
    const next = last.then(reload);
    last = next;
    return next;
  };
}

/**
 * Reads each settings file once in a bounded call, because `loadConfig` reads them on the event loop, where an
 * unresponsive drive would hold up every message. Throws ParleyError `config_invalid`.
 */
async function assertSettingsAnswer(
  { configPath, envFiles }: Pick<Config, 'configPath' | 'envFiles'>,
  disks: DiskCalls,
): Promise<void> {
  const paths = [...(configPath === undefined ? [] : [configPath]), ...envFiles.map(({ path }) => path)];
  await Promise.all(
    paths.map((path) =>
      // An unreadable file is reported by `loadConfig`.
      disks
        .run(path, () => readFile(path).catch(() => undefined))
        .catch(() => {
          throw configError([
            { where: path, what: "is on a disk that doesn't answer; try again once it does" },
          ]);
        }),
    ),
  );
}

/**
 * Returns the settings as written, but with the earlier bindings if one leads to an agent that this process doesn't
 * have yet: otherwise the default agent would take its place, with its own folder and tools.
 */
function withBindings(written: Config, before: Config, agents: Config['agents']): Config {
  const isKnown = ({ agent }: Config['bindings'][number]) => agents.some(({ id }) => id === agent);
  return written.bindings.every(isKnown) ? written : { ...written, bindings: before.bindings };
}

/**
 * Makes the running gateway reload its configuration and reports the result; every other process is told to reload too,
 * also when only workers run.
 */
export async function reloadProcesses() {
  const config = loadConfig();
  const answer = await askGateway(config);
  const hasGateway = answer.kind !== 'away' || !answer.hasWorkers;
  const asked = hasGateway ? await reloadGateway(config, requireRunning(answer, config)) : undefined;
  const told = notifyOthers(await readProcessAddresses(config.dataDir), asked?.pid);
  const result = { ...asked?.result, told };
  return { result, lines: [...(asked?.lines ?? []), ...told] } satisfies CommandOutput;
}

async function reloadGateway(config: Config, gateway: RunningGateway) {
  const result = await askRunning(gateway, config, reload, {});
  if (result.kind === 'refused')
    throw new ParleyError('config_invalid', `${result.problem}\nNothing was changed.`);
  const { kind: _, pid, ...changes } = result;
  return { pid, lines: describeReload(changes), result: changes };
}

/**
 * Has the processes that run, if any, take up a change of the settings file. `failed`: plugins that the gateway couldn't
 * load. Never rejects: the change stays.
 */
export async function takeUpSettings(
  config: Config,
): Promise<{ readonly lines: readonly string[]; readonly failed: readonly string[] }> {
  const answer = await askGateway(config);
  if (answer.kind === 'away' && !answer.hasWorkers) return { lines: [], failed: [] };
  try {
    const { lines, result } = await reloadProcesses();
    const failed = (result.plugins ?? []).filter(({ kind }) => kind === 'failed');
    return { lines, failed: failed.map(({ plugin }) => plugin) };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    const lines = [
      `The running processes haven't applied this: ${problem}`,
      `Then run: ${parleyCommand} reload`,
    ];
    return { lines, failed: [] };
  }
}

type Kill = (pid: number, signal: NodeJS.Signals) => void;
type Told = Pick<ProcessAddress, 'pid' | 'role'>;

/** Tells all processes except the one already asked to reload their configuration; returns a line for each. */
export function notifyOthers(
  processes: readonly Told[],
  asked: number | undefined,
  kill: Kill = (pid, signal) => void process.kill(pid, signal),
): readonly string[] {
  return processes.filter(({ pid }) => pid !== asked).map((other) => tell(other, kill));
}

function tell({ pid, role }: Told, kill: Kill): string {
  try {
    kill(pid, reloadSignal);
    return `Told ${role} ${pid} to reload; its log shows what it applied.`;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    // It has since ended; its next start reads the new settings.
    return code === 'ESRCH'
      ? `${role} ${pid} has ended.`
      : `${role} ${pid} couldn't be told to reload (${code}), so it keeps its earlier settings. Restart it.`;
  }
}

/** Makes a process reload its configuration, wherever it runs; no process ends on it. */
export const reloadSignal = 'SIGUSR2';

/**
 * Returns the signals that end a process, and those that make it reload its configuration. A closing terminal sends
 * SIGHUP to end the programs running in it; elsewhere a supervisor sends it to request a reload.
 */
export function signalsOf(isInTerminal: boolean): {
  readonly stop: readonly NodeJS.Signals[];
  readonly reload: readonly NodeJS.Signals[];
} {
  return isInTerminal
    ? { stop: ['SIGINT', 'SIGTERM', 'SIGHUP'], reload: [reloadSignal] }
    : { stop: ['SIGINT', 'SIGTERM'], reload: [reloadSignal, 'SIGHUP'] };
}
