import type { Schedule } from './plugin-scope.ts';

/** Calls each handler at its interval, never twice at once, until the signal aborts. `call` runs it and never rejects. */
export function runSchedules(
  schedules: readonly Schedule[],
  call: (schedule: Schedule, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): void {
  for (const schedule of schedules) {
    let isRunning = false;
    const timer = setInterval(async () => {
      if (isRunning) return;
      isRunning = true;
      await call(schedule, signal);
      isRunning = false;
    }, schedule.everyMs);
    timer.unref();
    signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  }
}
