/** Works for a while, then rests; says when it began to rest and when V8 was made to collect, ms since its start. */
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { gcWhenIdle } from '../../src/cli/gc-when-idle.ts';

const workMs = 1_500;

const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { detail } = entry as { readonly detail?: { readonly kind: number } };
    // Of its own accord V8 collects the young objects only: there is next to nothing else here.
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
