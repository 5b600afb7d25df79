// Runs each program at the head of its own process group, so that it can be ended together with everything it started.
import { spawn } from 'node:child_process';

/** How long a program may take to end after SIGTERM before it is killed. */
const graceMs = 5_000;

/** Creates a runner of programs that can end all it has running. */
export function createChildGroups() {
  const running = new Set();
  return {
    /** Runs a program with its output passed through; resolves with the exit code. */
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
    /** Ends all programs; resolves when they and everything they started are gone. */
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
      // This includes anything left behind by a program that has already ended.
      for (const child of children) signalGroup(child, 'SIGKILL');
      await gone;
    },
  };
}

/** Signals the child's group, which may already be gone. */
function signalGroup({ pid }, signal) {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
