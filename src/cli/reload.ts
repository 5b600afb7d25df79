import { z } from 'zod';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Config } from '../config/config.ts';
import { compareSettings, type ReloadResult } from '../config/live-settings.ts';
import { loadConfig } from '../config/load-config.ts';
import { readProcessAddresses } from '../processes/process-address.ts';
import { askRunningGateway, changeAtGateway } from './ask-gateway.ts';
import type { ExitCode } from './exit-code.ts';

export type ReloaderDeps = {
  /** As this process began. */
  readonly config: Config;
  readonly log: Log;
  /** Reads and checks the configuration anew. Throws ParleyError `config_invalid`. */
  load(): Promise<Config>;
  apply(config: Config): void;
};

/** Makes the function that reads the configuration anew. A file that has mistakes changes nothing. Never rejects. */
export function createReloader({ config, log, load, apply }: ReloaderDeps): () => Promise<ReloadResult> {
  let before = config;
  return async () => {
    try {
      const after = await load();
      const { applied } = compareSettings(before, after);
      // Compared with the beginning: what waits for a restart still waits after the next reload.
      const { needsRestart } = compareSettings(config, after);
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
}

const resultSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('applied'),
    applied: z.array(z.string()),
    needsRestart: z.array(z.string()),
  }),
  z.object({ kind: z.literal('refused'), problem: z.string() }),
]);

/** Lets the running gateway read its configuration anew and says what came of it; its workers are told to do the same. */
export async function runReload(): Promise<ExitCode> {
  const config = loadConfig();
  const { url } = await askRunningGateway(config);
  const result = resultSchema.parse(await changeAtGateway(config, `${url}/api/reload`));
  if (result.kind === 'refused')
    throw new ParleyError('config_invalid', `${result.problem}\nNothing was changed.`);
  const lines = [
    result.applied.length === 0 ? 'Nothing new to apply.' : `Applied: ${result.applied.join(', ')}.`,
    ...(result.needsRestart.length === 0 ? [] : [`After a restart: ${result.needsRestart.join(', ')}.`]),
  ];
  for (const { pid, role } of await readProcessAddresses(config.dataDir)) {
    if (role !== 'worker') continue;
    process.kill(pid, 'SIGHUP');
    lines.push(`Told worker ${pid}; its log says what it applied.`);
  }
  process.stdout.write(`${lines.join('\n')}\n`);
  return 0;
}
