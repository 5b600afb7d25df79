/**
 * Every name Parley uses in Redis. Nothing there is the truth: all of it can be rebuilt from the
 * store, and all of it may vanish at any time.
 */
export type RedisKeys = {
  /**
   * BullMQ's key prefix. The braces are a hash tag: on a cluster all keys of one installation share a
   * slot, which BullMQ's scripts need.
   */
  readonly prefix: string;
  /** Publish and subscribe: what the processes tell each other (hints; the store is read for the rest). */
  readonly eventsTopic: string;
};

/** `installation` keeps two Parleys apart that share one Redis: a stable id out of their database. */
export function redisKeys(installation?: string): RedisKeys {
  const prefix = installation === undefined ? '{parley}' : `{parley-${installation}}`;
  return { prefix, eventsTopic: `${prefix}:events` };
}
