import { createBoundedMap } from './bounded-map.ts';

/** Counts the bytes fetched for each sender within the last hour. */
export interface FileAllowance {
  hasRoom(sender: string, bytes: number): boolean;
  /** Adds to the sender's count; negative values correct an earlier one. */
  count(sender: string, bytes: number): void;
}

const minuteMs = 60_000;
const minutesKept = 60;
const maxSenders = 10_000;

/** Creates the counters, which are per minute and in memory: a restart forgets them. */
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
