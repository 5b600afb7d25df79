// Programs that run each at the head of a process group, so that they can be ended with all they have started.
import { spawn } from 'node:child_process';

/** How long a program that was told to end may take before it is ended. */
const graceMs = 5_000;

/** Runs programs, and ends those that run. */
export function createChildGroups() {
  const running = new Set();
  return {
    /** Resolves with the exit code; the output goes straight through. */
    run: (program, args, options) =>
      new Promise((resolve) => {
        const child = spawn(program, args, {
          stdio: ['ignore', 'inherit', 'inherit'],
          ...options,
          detached: true,
        });
        running.add(child);
        const end = (code) => {
          running.delete(child);
          resolve(code);
        };
        child.once('error', (error) => {
          console.error(error.message);
          end(1);
        });
        child.once('exit', (code) => end(code ?? 1));
      }),
    /** Resolves when all of them are gone, and all that they had started. */
    endAll: async () => {
      const children = [...running].filter(({ pid }) => pid !== undefined);
      const gone = Promise.all(
        children.map((child) => new Promise((resolve) => child.once('exit', resolve))),
      );
      for (const child of children) signalGroup(child, 'SIGTERM');
      let timer;
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, graceMs);
      });
      await Promise.race([gone, late]);
      clearTimeout(timer);
      // Also what a program that has ended left behind.
      for (const child of children) signalGroup(child, 'SIGKILL');
      await gone;
    },
  };
}

/** Its group may be gone already. */
function signalGroup({ pid }, signal) {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
