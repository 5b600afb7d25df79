// How Node.js runs Parley, for whatever starts it: `parley`, and the benchmarks' processes.
import { join } from 'node:path';

// Left alone, V8 lets old objects grow to four times what lives: 130 MB more under load at the same speed.
// Below 100 percent it would collect so often that a message takes a quarter more processor time. With less
// room for young objects, what 200 conversations have at hand grows old in between: with 2 MB a message of a
// burst takes a fifth more; 32 MB halve these collections, and cost 30 MB more under load for 5 percent at most.
// One thread for them (`--no-parallel-scavenge`) takes 0.97 of the time in all, but 1.12 of the main thread's.
// `--expose-gc` is for src/cli/gc-when-idle.ts.
// Node.js drops an address of a name that does not connect within 250 ms and takes the next one: Telegram, which has
// one of each family, could not be reached from beyond 250 ms without IPv6. Two seconds are the most of RFC 8305.
export const nodeFlags = [
  '--max-semi-space-size=16',
  '--heap-growing-percent=100',
  '--expose-gc',
  '--network-family-autoselection-attempt-timeout=2000',
];

export const nodeEnvironment = (root) => ({
  // Set before the first module is read, so that the code that strips types is not even loaded: 25 MB.
  NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'parley'),
  // File calls, name look-ups and hashes share these threads. A call on a disk that is gone holds its thread for ever:
  // src/processes/disk-gate.ts allows three such calls.
  UV_THREADPOOL_SIZE: '8',
  // Threads that share glibc's heaps leave less unused in each, and what is free goes back: 128 MB at rest, 133
  // without both, 131 with either.
  MALLOC_ARENA_MAX: '2',
  MALLOC_TRIM_THRESHOLD_: '131072',
});
