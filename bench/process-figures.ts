import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts processor time in ticks of 1/100 s (`getconf CLK_TCK`). */
const msPerTick = 10;

/** Returns the user and system time the process has used so far, ms, including its threads. */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is the program's name in parentheses and may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * msPerTick;
}

/** Returns the same to the nanosecond, but without threads that have ended: for an idle process, whose ticks are few. */
export function exactCpuMs(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const times = readdirSync(tasks).map(
    (id) => readFileSync(`${tasks}/${id}/schedstat`, 'utf8').split(' ')[0],
  );
  return times.reduce((sum, nanoseconds) => sum + Number(nanoseconds) / 1e6, 0);
}

/** Returns the process's current resident memory, MB. */
export function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, kilobytes = '0'] = /^VmRSS:\s+(\d+)/m.exec(status) ?? [];
  return Number(kilobytes) / 1024;
}

/** Returns the process's first child with this program name. */
export function childNamed(pid: number, name: string): number | undefined {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  return children.map(Number).find((child) => child > 0 && programOf(child) === name);
}

function programOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}
