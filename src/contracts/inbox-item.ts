/** The origin of an item in a lane: a network event, or something inside Parley. */
export type ItemSource = 'platform' | 'api' | 'schedule' | 'child' | 'session' | 'task' | 'job';

/**
 * How an item relates to the active run: `mode`: as the lane's mode says; `always`: it joins the run in any mode, if
 * it has the same target and authority; `alone`: it joins no run, and nothing joins it.
 */
export type Reach = 'mode' | 'always' | 'alone';

/** Settings of a program for the one run that its message begins. */
export type RunOverride = {
  /** Limit on the run's time, ms, if it is below the configured one. */
  readonly timeoutMs?: number;
  /** Replaces the agent's files and profile in its instructions. */
  readonly prompt?: string;
};

/** The work of a run: answer messages, summarize the older part of its session, or name another session. */
export type RunKind = 'turn' | 'compact' | 'title';
