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
