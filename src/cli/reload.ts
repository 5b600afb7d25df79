import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { DiskCalls } from '#contracts/disk-calls.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Config } from '../config/config.ts';
import { compareSettings, type ReloadResult } from '../config/live-settings.ts';
import { loadConfig } from '../config/load-config.ts';
import { configError } from '../config/problem.ts';
import { type ProcessAddress, readProcessAddresses } from '../processes/process-address.ts';
import { askGateway, changeAtGateway, type RunningGateway, requireRunning } from './ask-gateway.ts';
import type { CommandOutput } from './print.ts';
import { reloadSignal } from './signals.ts';

export type ReloaderDeps = {
  /** As this process began. */
  readonly config: Config;
  readonly log: Log;
  readonly disks: DiskCalls;
  /** Reads and checks the configuration anew. Throws ParleyError `config_invalid`. */
  load(): Promise<Config>;
  apply(config: Config): void;
};

/** Makes the function that reads the configuration anew. A file that has mistakes changes nothing. Never rejects. */
export function createReloader({
  config,
  log,
  disks,
  load,
  apply,
}: ReloaderDeps): () => Promise<ReloadResult> {
  let before = config;
  const reload = async (): Promise<ReloadResult> => {
    try {
      await assertSettingsAnswer(config, disks);
      const written = await load();
      const after = withBindings(written, before, config.agents);
      const { applied } = compareSettings(before, after);
      // Compared with the beginning: what waits for a restart still waits after the next reload.
      const waiting = compareSettings(config, after).needsRestart;
      const needsRestart = after === written ? waiting : [...waiting, 'bindings'];
      apply(after);
      before = after;
      log.info({ applied, needsRestart }, 'settings.reloaded');
      return { kind: 'applied', applied, needsRestart };
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      log.error({ problem }, 'settings.not-reloaded');
      return { kind: 'refused', problem };
    }
  };
  let last: Promise<unknown> = Promise.resolve();
  // One after the other: of two at once, the one that has read the older file could be the last to apply it.
  return () => {
    const next = last.then(reload);
    last = next;
    return next;
  };
}

/**
 * Reads each file of settings once in a bounded call: `loadConfig` reads them on the event loop, where a drive that is gone
 * would hold up every message. Throws ParleyError `config_invalid`.
 */
async function assertSettingsAnswer(
  { configPath, envFiles }: Pick<Config, 'configPath' | 'envFiles'>,
  disks: DiskCalls,
): Promise<void> {
  const paths = [...(configPath === undefined ? [] : [configPath]), ...envFiles.map(({ path }) => path)];
  await Promise.all(
    paths.map((path) =>
      // A file that can't be read is a problem that `loadConfig` words.
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
 * The settings as written; with the earlier bindings while one leads to an agent that this process doesn't have yet: the
 * default agent would play it, with its own folder and tools.
 */
function withBindings(written: Config, before: Config, agents: Config['agents']): Config {
  const isKnown = ({ agent }: Config['bindings'][number]) => agents.some(({ id }) => id === agent);
  return written.bindings.every(isKnown) ? written : { ...written, bindings: before.bindings };
}

const resultSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('applied'),
    /** The process that answered. */
    pid: z.int(),
    applied: z.array(z.string()),
    needsRestart: z.array(z.string()),
  }),
  z.object({ kind: z.literal('refused'), problem: z.string() }),
]);

/**
 * Lets the running gateway read its configuration anew and says what came of it; every other process is told to do the
 * same, and where only workers run, each of them.
 */
export async function reloadProcesses(): Promise<CommandOutput> {
  const config = loadConfig();
  const answer = await askGateway(config);
  const hasGateway = answer.kind !== 'away' || !answer.hasWorkers;
  const asked = hasGateway ? await reloadGateway(config, requireRunning(answer, config)) : undefined;
  const told = tellOthers(await readProcessAddresses(config.dataDir), asked?.pid);
  return { result: { ...asked?.result, told }, lines: [...(asked?.lines ?? []), ...told] };
}

async function reloadGateway(config: Config, { url }: RunningGateway) {
  const result = resultSchema.parse(await changeAtGateway(config, `${url}/api/reload`));
  if (result.kind === 'refused')
    throw new ParleyError('config_invalid', `${result.problem}\nNothing was changed.`);
  const { pid, applied, needsRestart } = result;
  const lines = [
    applied.length === 0 ? 'Nothing new to apply.' : `Applied: ${applied.join(', ')}.`,
    ...(needsRestart.length === 0 ? [] : [`After a restart: ${needsRestart.join(', ')}.`]),
  ];
  return { pid, lines, result: { applied, needsRestart } };
}

type Kill = (pid: number, signal: NodeJS.Signals) => void;
type Told = Pick<ProcessAddress, 'pid' | 'role'>;

/** Has the processes read their configuration anew, all but the one that was asked; a line for each. */
export function tellOthers(
  processes: readonly Told[],
  asked: number | undefined,
  kill: Kill = (pid, signal) => void process.kill(pid, signal),
): readonly string[] {
  return processes.filter(({ pid }) => pid !== asked).map((other) => tell(other, kill));
}

function tell({ pid, role }: Told, kill: Kill): string {
  try {
    kill(pid, reloadSignal);
    return `Told ${role} ${pid}; its log says what it applied.`;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    // It has ended since: its next start reads the new settings.
    return code === 'ESRCH'
      ? `${role} ${pid} has ended.`
      : `${role} ${pid} couldn't be told (${code}), so it keeps the earlier settings. Restart it.`;
  }
}
