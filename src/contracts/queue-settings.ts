/** How a lane treats a message that arrives while a run is active. */
export type QueueMode = 'steer' | 'followup' | 'collect' | 'interrupt';

export const queueModes: readonly QueueMode[] = ['steer', 'followup', 'collect', 'interrupt'];

export type QueueSettings = {
  readonly mode: QueueMode;
  /** Debounce before a first run, ms. */
  readonly debounceMs: number;
  /** Quiet window of `collect` after an active run, ms. */
  readonly quietMs: number;
  /** Waiting messages at most. */
  readonly cap: number;
  readonly drop: DropPolicy;
};

/** What gives way when the cap is reached. */
export type DropPolicy = 'summarize' | 'old' | 'new';

export const dropPolicies: readonly DropPolicy[] = ['summarize', 'old', 'new'];
