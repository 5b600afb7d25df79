/** Time as the process sees it. What decides about leases and due times is the database's clock instead. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms`, at most 24.8 days, or at once when the signal aborts (it never rejects). */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}
