import { statfs } from 'node:fs/promises';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';

/** Watches the free space of the data folder's disk. */
export interface FreeSpace {
  /** False while the folder's disk is too full to accept anything. */
  isEnough(): boolean;
  stop(): Promise<void>;
}

const leastBytes = 200 * 1024 * 1024;
const intervalMs = 5_000;

/** Watches the disk outside the hot path. Below 200 MB intake visibly stops, and cursors stay where they are. */
export function watchFreeSpace(deps: {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Log;
}): FreeSpace {
  const { folder, clock, log } = deps;
  const stopping = new AbortController();
  let isEnough = true;
  const loop = async () => {
    while (!stopping.signal.aborted) {
      try {
        const { bavail, bsize } = await statfs(folder);
        const was = isEnough;
        isEnough = bavail * bsize >= leastBytes;
        if (was !== isEnough)
          log[isEnough ? 'info' : 'error'](
            { folder, freeBytes: bavail * bsize },
            isEnough ? 'disk.space-recovered' : 'disk.space-exhausted',
          );
      } catch (error) {
        log.warn({ folder, error }, 'disk.not-measured');
      }
      await clock.wait(intervalMs, stopping.signal);
    }
  };
  const running = loop();
  return {
    isEnough: () => isEnough,
    stop: () => {
      stopping.abort();
      return running;
    },
  };
}

/** Says whether the folder's disk stays usable with this many more bytes on it. True if that can't be determined. */
export async function hasRoom(folder: string, bytes: number): Promise<boolean> {
  const stats = await statfs(folder).catch(() => undefined);
  return stats === undefined || stats.bavail * stats.bsize >= leastBytes + bytes;
}
