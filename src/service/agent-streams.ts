/**
 * The events of sessions, across all processes of a database. A process tells the others which sessions it follows, and
 * only those sessions' events travel through Redis. They only serve speed: any event may be lost.
 */
import type { AgentStreamEvent } from '#contracts/agent-stream.ts';
import type { Clock } from '#contracts/clock.ts';
import type { LiveEvents } from '../queue/live-events.ts';
import { type Broker, createBroker, type LagNote } from './broker.ts';

/** Publishes and follows the events of sessions. */
export interface AgentStreams {
  /** Publishes events; `make` is only called when the lane has followers, here or elsewhere. */
  publish(laneKey: string, make: () => readonly AgentStreamEvent[]): void;
  /** Tells followers about the end of a run that no process could report. */
  gaveUp(run: { readonly laneKey: string; readonly runId: string; readonly reason: string }): void;
  /** Returns events from this call on, until the signal aborts. */
  subscribe(laneKey: string, signal: AbortSignal): AsyncIterableIterator<AgentStreamEvent | LagNote>;
  /** Takes an event of another process. */
  hear(laneKey: string, event: AgentStreamEvent): void;
  /** Notes that another process follows the lane for a while. */
  follow(laneKey: string): void;
}

/** How often a process announces that it follows a lane, and how long an announcement is valid, ms. */
const repeatMs = 10_000;
const believeMs = 30_000;

/** Creates the streams of this process; `live` carries events to the other processes. */
export function createAgentStreams({
  clock,
  live,
}: {
  readonly clock: Clock;
  readonly live: Pick<LiveEvents, 'publish'>;
}): AgentStreams {
  const broker: Broker<AgentStreamEvent> = createBroker();
  /** Lanes that other processes follow, and until when. */
  const followed = new Map<string, number>();
  let count = 0;

  const isFollowed = (laneKey: string): boolean => (followed.get(laneKey) ?? 0) > clock.now();
  const sayFollowing = async (laneKey: string, signal: AbortSignal) => {
    while (!signal.aborted) {
      live.publish({ kind: 'follow', laneKey });
      await clock.wait(repeatMs, signal);
    }
  };
  const publish: AgentStreams['publish'] = (laneKey, make) => {
    const isElsewhere = isFollowed(laneKey);
    if (!isElsewhere && !broker.isHeard(laneKey)) return;
    for (const event of make()) {
      broker.publish(laneKey, event);
      // Numbered, because identical events at the same moment would be sent as one.
      if (isElsewhere) live.publish({ kind: 'stream', laneKey, number: ++count, event });
    }
  };
  return {
    publish,
    gaveUp: ({ laneKey, ...end }) =>
      publish(laneKey, () => [{ stream: 'lifecycle', phase: 'error', ...end }]),
    subscribe: (laneKey, signal) => {
      void sayFollowing(laneKey, signal);
      return broker.subscribe(laneKey, signal);
    },
    hear: (laneKey, event) => broker.publish(laneKey, event),
    follow: (laneKey) => {
      // Expired entries are removed here, because a lane may never be published in again.
      for (const known of followed.keys()) if (!isFollowed(known)) followed.delete(known);
      followed.set(laneKey, clock.now() + believeMs);
    },
  };
}
