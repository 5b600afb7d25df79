import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { type ProcessAddress, readProcessAddresses } from '../processes/process-address.ts';

/** Variables that this command lacks and a running process of its data folder has, and the other way round. */
export type Disagreement = {
  readonly process: ProcessAddress;
  readonly lacking: readonly string[];
  readonly extra: readonly string[];
};

/** Compares the names of the set variables with those of the processes on the data folder; values are nobody's business. */
export async function findDisagreements({
  dataDir,
  variables,
}: Pick<Config, 'dataDir' | 'variables'>): Promise<readonly Disagreement[]> {
  const processes = await readProcessAddresses(dataDir);
  return processes
    .map((process) => ({
      process,
      lacking: process.variables.filter((name) => !variables.includes(name) && !isPlace(name)),
      extra: variables.filter((name) => !process.variables.includes(name) && !isPlace(name)),
    }))
    .filter(({ lacking, extra }) => lacking.length + extra.length > 0);
}

/** These only say where the folder and the page are, and both were found. */
function isPlace(name: string): boolean {
  return ['PARLEY_DATA_DIR', 'PARLEY_PORT', 'PARLEY_HOST', 'PARLEY_LOG_LEVEL'].includes(name);
}

/**
 * Refuses to work on another database than the processes of the data folder: without their environment, a command would
 * guess. Throws ParleyError `config_invalid` that says what to set.
 */
export async function agreeWithProcesses(config: Pick<Config, 'dataDir' | 'variables'>): Promise<void> {
  const decisive = (names: readonly string[]) => names.includes('DATABASE_URL');
  for (const { process, lacking, extra } of await findDisagreements(config)) {
    if (!decisive(lacking) && !decisive(extra)) continue;
    const difference = decisive(lacking)
      ? "it has DATABASE_URL and this shell doesn't"
      : "this shell has DATABASE_URL and it doesn't";
    throw new ParleyError(
      'config_invalid',
      `Process ${process.pid} runs on ${config.dataDir} with another database: ${difference}. Run the command with the same environment, or put the variable into .env.`,
    );
  }
}
