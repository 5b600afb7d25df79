import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';

/** Which process started the private server, so that the next one can tell an orphan from a neighbour. */
export type ServerOwner = { readonly pid: number; readonly startedAt: string };

const ownerSchema = z.object({ pid: z.int().positive(), startedAt: z.string() });

export function thisOwner(): ServerOwner {
  return { pid: process.pid, startedAt: startTimeOf(process.pid) ?? '' };
}

export function writeOwner(path: string, owner: ServerOwner): void {
  writeFileSync(path, JSON.stringify(owner), { mode: 0o600 });
}

export function removeOwner(path: string): void {
  rmSync(path, { force: true });
}

/** The recorded owner if that very process still lives; undefined when it is gone, or is this one. */
export function findLivingOwner(path: string): ServerOwner | undefined {
  const owner = readOwner(path);
  if (owner === undefined || owner.pid === process.pid || !isAlive(owner.pid)) return undefined;
  const startedAt = startTimeOf(owner.pid);
  // Another start time: the number was given to another process since.
  return startedAt !== undefined && startedAt !== owner.startedAt ? undefined : owner;
}

function readOwner(path: string): ServerOwner | undefined {
  try {
    return ownerSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    // Absent or cut off by a crash: then nobody is known, and the socket tells the rest.
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Clock ticks from boot to the start of a process (field 22 of proc_pid_stat(5)); undefined without /proc. */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold spaces and parentheses itself.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
