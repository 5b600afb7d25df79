/** Lets a process read its configuration anew, wherever it runs: none of them ends by it. */
export const reloadSignal = 'SIGUSR2';

/**
 * Lists the signals that end a process, and those that let it read its configuration anew. A terminal that closes sends SIGHUP to end what runs
 * in it; elsewhere a supervisor means a reload by it.
 */
export function signalsOf(isInTerminal: boolean): {
  readonly stop: readonly NodeJS.Signals[];
  readonly reload: readonly NodeJS.Signals[];
} {
  return isInTerminal
    ? { stop: ['SIGINT', 'SIGTERM', 'SIGHUP'], reload: [reloadSignal] }
    : { stop: ['SIGINT', 'SIGTERM'], reload: [reloadSignal, 'SIGHUP'] };
}
