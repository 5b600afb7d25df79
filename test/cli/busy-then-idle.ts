/** Works for a while, then rests; says when it began to rest and when V8 was made to collect, ms since its start. */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { collectWhenIdle } from '../../src/cli/collect-when-idle.ts';

const workMs = 1_500;
const collected = new Promise<number>((resolve) => {
  const isAsked = ({ detail }: PerformanceEntry) =>
    ((detail as { readonly flags: number }).flags &
      constants.NODE_PERFORMANCE_GC_FLAGS_ALL_AVAILABLE_GARBAGE) >
    0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries().filter(isAsked)) resolve(entry.startTime);
  });
  observer.observe({ type: 'gc' });
});
void collectWhenIdle();
const work = setInterval(() => {
  for (const until = performance.now() + 20; performance.now() < until; );
}, 40);
setTimeout(() => clearInterval(work), workMs);
process.stdout.write(JSON.stringify({ idleAt: workMs, collectedAt: await collected }));
process.exit(0);
