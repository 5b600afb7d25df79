/**
 * The events of sessions, over all processes of a database. A process tells the others which sessions it follows;
 * only those travel through Redis. For speed only: any event may be lost.
 */
import type { AgentStreamEvent } from '#contracts/agent-stream.ts';
import type { Clock } from '#contracts/clock.ts';
import type { LiveEvents } from '../queue/live-events.ts';
import { type Broker, createBroker, type LagNote } from './broker.ts';

/** Publishes and follows what happens in sessions. */
export interface AgentStreams {
  /** `make` is called only when somebody follows the lane, here or elsewhere. */
  publish(laneKey: string, make: () => readonly AgentStreamEvent[]): void;
  /** Tells followers the end of a run that had no process to tell it. */
  gaveUp(run: { readonly laneKey: string; readonly runId: string; readonly reason: string }): void;
  /** Events from this call on, until the signal aborts. */
  subscribe(laneKey: string, signal: AbortSignal): AsyncIterableIterator<AgentStreamEvent | LagNote>;
  /** An event of another process. */
  hear(laneKey: string, event: AgentStreamEvent): void;
  /** Another process follows the lane, for a while from now on. */
  follow(laneKey: string): void;
}

/** How often a process says that it follows a lane, and how long the others believe it, ms. */
const repeatMs = 10_000;
const believeMs = 30_000;

/** Creates the streams of this process; `live` carries them to the others. */
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
      // Numbered, since equal events of one moment would be sent as one.
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
      // Nothing may ever be published in a lane that was followed.
      for (const known of followed.keys()) if (!isFollowed(known)) followed.delete(known);
      followed.set(laneKey, clock.now() + believeMs);
    },
  };
}
