import { createBoundedMap } from './bounded-map.ts';

/** Counts the bytes of files that each sender has had fetched within an hour. */
export interface FileAllowance {
  hasRoom(sender: string, bytes: number): boolean;
  /** Negative: fewer than were counted before. */
  count(sender: string, bytes: number): void;
}

const minuteMs = 60_000;
const minutesKept = 60;
const maxSenders = 10_000;

/** Creates the counters: by the minute and in memory, so that a restart forgets them. */
export function createFileAllowance(
  clock: { now(): number },
  { bytesPerHour }: { readonly bytesPerHour: number },
): FileAllowance {
  const senders = createBoundedMap<ReadonlyMap<number, number>>(maxSenders);
  const minute = () => Math.floor(clock.now() / minuteMs);
  const lately = (sender: string) =>
    [...(senders.get(sender) ?? [])].filter(([at]) => at > minute() - minutesKept);
  return {
    hasRoom: (sender, bytes) =>
      lately(sender).reduce((sum, [, counted]) => sum + counted, bytes) <= bytesPerHour,
    count: (sender, bytes) => {
      const minutes = new Map(lately(sender));
      minutes.set(minute(), (minutes.get(minute()) ?? 0) + bytes);
      senders.set(sender, minutes);
    },
  };
}
