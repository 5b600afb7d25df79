/**
 * Works for a while, then idles. Reports when it became idle and when a full garbage collection ran, ms since its
 * start.
 */
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { gcWhenIdle } from '../../src/cli/gc-when-idle.ts';

const workMs = 1_500;

const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { detail } = entry as { readonly detail?: { readonly kind: number } };
    // On its own V8 would only collect the young generation here, because hardly anything else is allocated.
    if (detail?.kind !== constants.NODE_PERFORMANCE_GC_MAJOR) continue;
    process.stdout.write(JSON.stringify({ idleAt: workMs, collectedAt: entry.startTime }));
    process.exit(0);
  }
});
observer.observe({ type: 'gc' });
void gcWhenIdle();
const work = setInterval(() => {
  for (const until = performance.now() + 20; performance.now() < until; );
}, 40);
setTimeout(() => clearInterval(work), workMs);
setTimeout(() => process.exit(1), 20_000);
