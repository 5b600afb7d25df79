import { readdirSync, readFileSync } from 'node:fs';

/**
 * `kill -9` of a process and of everything it started, at once, as in a power cut. The children go
 * first and by their own ids: Parley's Redis is no member of its process group.
 */
export function killTree(pid: number): void {
  const children = childrenOf(pid);
  for (const target of [...children, -pid]) {
    try {
      process.kill(target, 'SIGKILL');
    } catch {
      // It has ended already: that is what was wanted.
    }
  }
}

/** Without /proc Redis is ended by its own guard, a moment later. */
function childrenOf(pid: number): readonly number[] {
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
