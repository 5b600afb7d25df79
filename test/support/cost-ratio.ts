/** A clock may tick every 10 ms: shorter than this is not compared. */
const leastMs = 60;
const rounds = 3;

/**
 * How many times more of the process's processor time twice the length takes: what else a machine does is
 * not in it, and of several rounds the quickest counts.
 */
export function costRatio(run: (length: number) => void, length: number): number {
  const quickest = (size: number, times: number) =>
    Math.min(...Array.from({ length: rounds }, () => spent(() => run(size), times)));
  let times = 1;
  let once = 0;
  // The quickest must last, not only the first: compiled, the same work may take less than the clock can tell.
  while (once < leastMs) {
    while (spent(() => run(length), times) < leastMs) times *= 2;
    once = quickest(length, times);
    if (once < leastMs) times *= 2;
  }
  return quickest(length * 2, times) / once;
}

function spent(run: () => void, times: number): number {
  const before = process.cpuUsage();
  for (let n = 0; n < times; n += 1) run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
