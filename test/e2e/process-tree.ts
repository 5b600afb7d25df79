import { readdirSync, readFileSync } from 'node:fs';

/**
 * `kill -9` of a process and of everything it started, at once, as in a power cut. The children go by
 * their own ids: Parley's Redis is no member of its process group. Another process goes before its
 * children, or it would live to log their death; one that kills itself can only go last.
 */
export function killTree(pid: number): void {
  const children = childrenOf(pid);
  for (const target of pid === process.pid ? [...children, -pid] : [-pid, ...children]) {
    try {
      process.kill(target, 'SIGKILL');
    } catch {
      // It has ended already: that is what was wanted.
    }
  }
}

/** What a process has started itself; without /proc nothing, and Redis is ended by its own guard, a moment later. */
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
