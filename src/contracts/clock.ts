/** Time as the process sees it. Leases and due times are decided by the database's clock instead. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms`, at most 24.8 days, or immediately when the signal aborts (it never rejects). */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Returns how long it takes, ms, until the next multiple of `everyMs` since the start of this process. What repeats
   * in step wakes an idle process once instead of one by one, and other processes at other moments.
   */
  untilStep?(everyMs: number): number;
}
