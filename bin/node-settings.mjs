// The Node.js settings that Parley runs with, for everything that starts it: `parley` and the benchmarks' processes.
import { join } from 'node:path';

/**
 * Node.js gives up on a host's address that doesn't connect within 250 ms and tries the next one. Telegram has one
 * address of each family, so without IPv6 it couldn't be reached over a link slower than 250 ms. Two seconds is the
 * maximum in RFC 8305.
 */
export const connectAttemptMs = 2000;

// By default V8 lets the old generation grow to four times the live objects: 130 MB more under load at the same speed.
// Below 100 percent it would collect so often that a message takes a quarter more processor time. With less
// room for young objects, the working data of 200 conversations is promoted in between: with 2 MB a message in a
// burst takes a fifth more; 32 MB halve these collections, but cost 30 MB more under load to gain at most 5 percent.
// Collecting them on one thread (`--no-parallel-scavenge`) takes 0.97 of the total time, but 1.12 of the main thread's.
// `--expose-gc` is for src/cli/start.ts.
export const nodeFlags = [
  '--max-semi-space-size=16',
  '--heap-growing-percent=100',
  '--expose-gc',
  `--network-family-autoselection-attempt-timeout=${connectAttemptMs}`,
];

export const nodeEnvironment = (root) => ({
  // Set before the first module is read, so that the code that strips types isn't even loaded, which saves 25 MB.
  NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'parley'),
  // File calls, name lookups and hashes share these threads. A call on a disk that is gone blocks its thread forever;
  // src/processes/disk-gate.ts allows three such calls.
  UV_THREADPOOL_SIZE: '8',
  // When threads share glibc's heaps, less memory is left unused in each; trimming returns free memory to the system.
  // A gateway at rest takes 128 MB with both settings, 133 with neither, 131 with only one.
  MALLOC_ARENA_MAX: '2',
  MALLOC_TRIM_THRESHOLD_: '131072',
});
