import { createTimelines, type Timelines, type TimelinesDeps } from '../../src/channel-host/timeline.ts';
import { noLiveEvents } from '../../src/queue/live-events.ts';
import { silentLog } from './silent-log.ts';

/** Returns the timelines of the only process on a database that was never restored. */
export function someTimelines(store: TimelinesDeps['store'], over: Partial<TimelinesDeps> = {}): Timelines {
  const redact = (text: string) => text;
  return createTimelines({ store, log: silentLog, live: noLiveEvents, restoreMark: '', redact, ...over });
}
