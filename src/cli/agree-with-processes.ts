import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { type ProcessAddress, readProcessAddresses } from '../processes/process-address.ts';

/** Variables that are set in a running process of the data folder but not in this command, and vice versa. */
export type Disagreement = {
  readonly process: ProcessAddress;
  readonly lacking: readonly string[];
  readonly extra: readonly string[];
};

/** Compares the names of the set variables with those of the processes on the data folder, never their values. */
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

/** These only say where the folder and the page are, which is already known. */
function isPlace(name: string): boolean {
  return ['PARLEY_DATA_DIR', 'PARLEY_PORT', 'PARLEY_HOST', 'PARLEY_LOG_LEVEL'].includes(name);
}

/**
 * Refuses to work on a different database than the data folder's processes, since without their environment a command
 * could only guess. Throws ParleyError `config_invalid` that says what to set.
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
      `Process ${process.pid} uses a different database on ${config.dataDir}: ${difference}. Run the command in the same environment, or put the variable in .env.`,
    );
  }
}
