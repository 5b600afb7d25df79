/**
 * How a lane treats a message that arrives while a run is active.
 *
 * `steer-backlog` is `steer` with a guarantee: a message steered into a run is consumed only once a
 * decision made after reading it is on record: an answer, or a tool turn with a started
 * tool. A run that ends before that (error, timeout, given up, interrupted, stopped by somebody
 * else) requeues it in its old place, and it is taken again. Its sender's own `/stop` or `/new` cancels it.
 */
export type QueueMode = 'steer' | 'steer-backlog' | 'followup' | 'collect' | 'interrupt';

/** Every queue mode, for schemas and `/queue`. */
export const queueModes: readonly QueueMode[] = [
  'steer',
  'steer-backlog',
  'followup',
  'collect',
  'interrupt',
];

/** Whether a boundary of the active run takes in waiting messages. */
export function isSteering(mode: QueueMode): boolean {
  return mode === 'steer' || mode === 'steer-backlog';
}

/** How a lane treats messages that arrive while it is busy. */
export type QueueSettings = {
  readonly mode: QueueMode;
  /** Debounce before a first run, ms. */
  readonly debounceMs: number;
  /** Quiet window of `collect` after an active run, ms. */
  readonly quietMs: number;
  /** Maximum number of waiting messages. */
  readonly cap: number;
  readonly drop: DropPolicy;
};

/** Messages dropped when the cap is reached. */
export type DropPolicy = 'summarize' | 'old' | 'new';

/** Every overflow policy, for schemas and `/queue`. */
export const dropPolicies: readonly DropPolicy[] = ['summarize', 'old', 'new'];

/** Each message restarts a debounce or quiet window, which ends at the latest this many windows after the first. */
export const longestWindows = 10;
