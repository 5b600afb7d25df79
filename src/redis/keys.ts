/**
 * Every name that Parley uses in Redis. Nothing there is authoritative: all of it can be rebuilt from the store and may
 * vanish at any time.
 */
export type RedisKeys = {
  /**
   * BullMQ's key prefix. The braces are a hash tag: on a cluster they put all keys of an installation into one slot, as
   * BullMQ's scripts require.
   */
  readonly prefix: string;
  /** Publish/subscribe topic for hints between processes; everything else is read from the store. */
  readonly eventsTopic: string;
};

/** Returns the names. `installation`, a stable id of the database, separates installations that share a Redis. */
export function redisKeys(installation?: string): RedisKeys {
  const prefix = installation === undefined ? '{parley}' : `{parley-${installation}}`;
  return { prefix, eventsTopic: `${prefix}:events` };
}
