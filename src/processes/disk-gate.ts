/**
 * Limits calls on disks that may stop responding, such as a workspace on a network drive. A call on a disk that is gone
 * never returns, can't be cancelled, and occupies one of the few threads that all file calls of the process share: four
 * such calls would also block its media, its data folder and its name lookups. A disk recovers as its calls return. The
 * data folder's disk isn't limited: it has the database, without which nothing runs.
 */

import { ParleyError } from '#contracts/errors.ts';
import type { DiskCalls } from '#contracts/workspace-reader.ts';

export type DiskBounds = {
  /** Most concurrent calls on all disks: fewer than the process has threads. */
  readonly most: number;
  readonly maxPerItem: number;
  /** How long a caller waits, ms. */
  readonly patienceMs: number;
};

type DiskState = { running: number; overdue: number };
type WaitingCall = { readonly disk: DiskState; readonly start: () => void };

/** The calls on all such disks of one process. */
export class DiskGate implements DiskCalls {
  readonly #bounds: DiskBounds;
  readonly #disks = new Map<string, DiskState>();
  readonly #all: DiskState = { running: 0, overdue: 0 };
  readonly #waiting: WaitingCall[] = [];

  constructor(bounds: DiskBounds) {
    this.#bounds = bounds;
  }

  async run<T>(name: string, call: () => Promise<T>, dropLate?: (result: T) => void): Promise<T> {
    const disk = this.#diskOf(name);
    if (this.#isSilent(disk)) throw noAnswer();
    if (this.#hasRoom(disk)) this.#take(disk);
    else await this.#turnInTime(disk);
    return await new Promise<T>((resolve, reject) => {
      let isLate = false;
      const giveUp = () => {
        isLate = true;
        reject(noAnswer());
      };
      this.#hold(disk, call, giveUp).then(
        (result) => (isLate ? dropLate?.(result) : resolve(result)),
        reject,
      );
    });
  }

  async finish(name: string, call: () => Promise<void>): Promise<void> {
    const disk = this.#diskOf(name);
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, this.#isSilent(disk) ? 0 : this.#bounds.patienceMs);
      timer.unref();
      const turn = Promise.withResolvers<void>();
      if (this.#hasRoom(disk)) {
        this.#take(disk);
        turn.resolve();
      } else this.#waiting.push({ disk, start: turn.resolve });
      turn.promise
        .then(() => this.#hold(disk, call))
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }

  #diskOf(name: string): DiskState {
    const known = this.#disks.get(name) ?? { running: 0, overdue: 0 };
    this.#disks.set(name, known);
    return known;
  }

  #isSilent(disk: DiskState): boolean {
    const { most, maxPerItem } = this.#bounds;
    return disk.overdue >= maxPerItem || this.#all.overdue >= most;
  }

  #hasRoom(disk: DiskState): boolean {
    const { most, maxPerItem } = this.#bounds;
    return disk.running < maxPerItem && this.#all.running < most;
  }

  #take(disk: DiskState): void {
    disk.running += 1;
    this.#all.running += 1;
  }

  #turnInTime(disk: DiskState): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting: WaitingCall = {
        disk,
        start: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(noAnswer());
      }, this.#bounds.patienceMs);
      timer.unref();
      this.#waiting.push(waiting);
    });
  }

  /** Makes a call whose turn has come. Its place becomes free when the call returns, however late. */
  async #hold<T>(disk: DiskState, call: () => Promise<T>, onOverdue?: () => void): Promise<T> {
    let isOverdue = false;
    const timer = setTimeout(() => {
      isOverdue = true;
      disk.overdue += 1;
      this.#all.overdue += 1;
      onOverdue?.();
    }, this.#bounds.patienceMs);
    timer.unref();
    try {
      return await call();
    } finally {
      clearTimeout(timer);
      if (isOverdue) {
        disk.overdue -= 1;
        this.#all.overdue -= 1;
      }
      disk.running -= 1;
      this.#all.running -= 1;
      this.#startNext();
    }
  }

  #startNext(): void {
    const index = this.#waiting.findIndex(({ disk }) => this.#hasRoom(disk));
    const [next] = index === -1 ? [] : this.#waiting.splice(index, 1);
    if (next === undefined) return;
    this.#take(next.disk);
    next.start();
  }
}

function noAnswer(): ParleyError {
  return new ParleyError(
    'tool_failed',
    "The workspace's disk isn't responding; a network drive may be gone. What was begun may still complete. Continue " +
      'without its files and tell the owner.',
    { retry: { kind: 'later' } },
  );
}

/** Fewer than the four threads that Node.js has by default (bin/node-settings.mjs sets more). */
const bounds: DiskBounds = { most: 3, maxPerItem: 2, patienceMs: 15_000 };

/** The gate for calls on workspaces: one for the entire process, which shares its threads. */
export const workspaceDisks = new DiskGate(bounds);
