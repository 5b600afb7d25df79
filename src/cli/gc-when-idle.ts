import { setTimeout as pause } from 'node:timers/promises';

const lookMs = 1_000;
/** A process that uses less processor time than this per `lookMs` has nothing that a pause would delay, ms. */
const idleMs = 50;

/**
 * Frees the memory that startup leaves behind, once nothing has happened for a second: 129 MB resident at rest, 153
 * without it. It blocks this thread for a tenth of a second. Node.js only offers this with `--expose-gc`, which
 * bin/parley.mjs sets.
 */
export async function gcWhenIdle(): Promise<void> {
  const { gc } = globalThis;
  if (gc === undefined) return;
  await untilIdle();
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** Resolves when nothing has happened for a second. */
async function untilIdle(): Promise<void> {
  let before: NodeJS.CpuUsage;
  do {
    before = process.cpuUsage();
    await pause(lookMs, undefined, { ref: false });
  } while (workedMs(before) >= idleMs);
}

/** Returns the processor time of all threads since `before`, ms. */
function workedMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
