import { statfs } from 'node:fs/promises';
import { waitInStep } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { outgoingPrefix } from '../store/intake/media.ts';

/**
 * Creates a name for a new file of the item, never the sender's; downloads append `.part` to it. The name of a file that
 * may be looked at once says so, since it is removed earlier.
 */
export function newMediaName(inboxId: string, { isViewOnce = false } = {}): string {
  return `${inboxId}.${crypto.randomUUID().slice(0, 8)}${isViewOnce ? '.once' : ''}`;
}

/** Creates a name for the copy of a file to send. */
export function newOutgoingName(): string {
  return newMediaName(`${outgoingPrefix}${crypto.randomUUID()}`);
}

/**
 * Returns the item of a file named by `newMediaName`; undefined for any other name, and so for every path out of the
 * folder.
 */
export function readMediaName(
  name: string,
): { readonly inboxId: string; readonly isViewOnce: boolean; readonly isPartial: boolean } | undefined {
  const [, inboxId, once, partial] = /^([\w-]{1,64})\.[\da-f]{8}(\.once)?(\.part)?$/.exec(name) ?? [];
  if (inboxId === undefined) return undefined;
  return { inboxId, isViewOnce: once !== undefined, isPartial: partial !== undefined };
}

/** Watches the free space of the data folder's disk. */
export interface FreeSpace {
  /** False while the folder's disk is too full to accept anything. */
  isEnough(): boolean;
  stop(): Promise<void>;
}

const minBytes = 200 * 1024 * 1024;
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
        isEnough = bavail * bsize >= minBytes;
        if (was !== isEnough)
          log[isEnough ? 'info' : 'error'](
            { folder, freeBytes: bavail * bsize },
            isEnough ? 'disk.space-recovered' : 'disk.space-exhausted',
          );
      } catch (error) {
        log.warn({ folder, error }, 'disk.not-measured');
      }
      await waitInStep(clock, intervalMs, stopping.signal);
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
  return stats === undefined || stats.bavail * stats.bsize >= minBytes + bytes;
}
