import { setTimeout as pause } from 'node:timers/promises';
import { noSections, type Sections } from '#contracts/section.ts';

const lookMs = 1_000;
/** A process that works less than this in that time has nothing at hand that a pause would hold up, ms. */
const idleMs = 50;

/**
 * Gives back what the start has left behind as soon as nothing happens for a second: 129 MB resident at rest, 153
 * without. It stops this thread for a tenth of a second. Node.js offers that with `--expose-gc` only, which
 * bin/parley.mjs sets.
 */
export async function gcWhenIdle(sections: Sections = noSections): Promise<void> {
  const { gc } = globalThis;
  if (gc === undefined) return;
  await untilIdle();
  sections.run('collection at rest', () => gc({ type: 'major', execution: 'sync', flavor: 'last-resort' }));
}

/** Resolves when nothing has happened for a second. */
export async function untilIdle(): Promise<void> {
  let before: NodeJS.CpuUsage;
  do {
    before = process.cpuUsage();
    await pause(lookMs, undefined, { ref: false });
  } while (workedMs(before) >= idleMs);
}

/** Processor time of all threads since then, ms. */
function workedMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
