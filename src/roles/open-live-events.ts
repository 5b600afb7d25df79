import type { Log } from '#contracts/log.ts';
import type { Config } from '../config/config.ts';
import { createLiveEvents, type LiveEvents, noLiveEvents } from '../queue/live-events.ts';
import type { Infrastructure } from './infrastructure.ts';

/** Opens the channel to the other processes. A process with its own database has no others to notify. */
export function openLiveEvents(
  { role, databaseUrl }: Config,
  deps: Pick<Infrastructure, 'redis' | 'holder'> & { readonly log: Log },
): LiveEvents {
  if (role === 'all' && databaseUrl === undefined) return noLiveEvents;
  const { connections, keys } = deps.redis;
  return createLiveEvents({ ...deps, redis: connections, keys });
}
