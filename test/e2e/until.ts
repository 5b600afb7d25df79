import { setTimeout as pause } from 'node:timers/promises';
import { patienceMs } from '../support/patience.ts';

export type Waiting = { readonly what: string; readonly deadlineMs?: number };

/** Resolves once the state is reached; rejects at the deadline, saying what never happened. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  { what, deadlineMs = patienceMs }: Waiting,
): Promise<void> {
  const deadline = performance.now() + deadlineMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await pause(20);
  }
}
