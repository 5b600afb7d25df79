import { readdirSync, readFileSync } from 'node:fs';

/**
 * Kills a process and everything it started with `kill -9`, all at once, as in a power cut. The children are killed by
 * their own ids, because Parley's Redis isn't a member of its process group. Another process is killed before
 * its children, or it would live to log their death; a process that kills itself can only be last.
 */
export function killTree(pid: number): void {
  const children = childrenOf(pid);
  for (const target of pid === process.pid ? [...children, -pid] : [-pid, ...children]) {
    try {
      process.kill(target, 'SIGKILL');
    } catch {
      // It has already ended, which is the goal.
    }
  }
}

/**
 * Returns the processes that a process started itself; none without /proc, where Redis is ended a moment later by its
 * own guard.
 */
export function childrenOf(pid: number): readonly number[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads
      .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '))
      .map(Number)
      .filter((child) => child > 0);
  } catch {
    return [];
  }
}
