import type { Config } from '../config/config.ts';
import { loadReadableConfig } from '../config/load-config.ts';
import { stripText } from '../logging/redaction.ts';
import { assertReadable } from './file-fault.ts';

/**
 * Returns the configuration for a command that only reads. What is wrong with it is printed on standard error, so that
 * a broken file never hides what the running gateway and the store can tell.
 */
export function configForReading(): Config {
  const { config, problem } = loadReadableConfig();
  if (problem !== undefined)
    process.stderr.write(
      `${problem.split('\n').map(stripText).join('\n')}\nUntil that is fixed, only the data folder and the address are read from it.\n\n`,
    );
  assertReadable(config.dataDir);
  return config;
}
