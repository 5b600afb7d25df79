/**
 * The log in the data folder, for a start that no supervisor keeps the output of. It is bounded, never flushed and
 * never waited for: lines that the disk doesn't take in time are dropped and counted.
 */
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createRotatingFile } from './rotating-file.ts';

/** Takes lines of the log. */
export interface LogFile {
  /** Returns at once. */
  write(line: string): void;
  /** Writes what is still in memory, unless the disk takes longer than a second. */
  close(): Promise<void>;
}

/** Returns the path of the log; the file before it has `.1` appended. */
export const logPath = (dataDir: string): string => join(dataDir, 'logs', 'parley.log');

/** Most characters that wait for the disk. */
const maxWaiting = 4 * 1024 * 1024;
/** Pause after a failed write, ms; lines of this time are dropped. */
const pauseMs = 1_000;
const closeMs = 1_000;

/** Opens the file at the first line, so a folder that can't be written yet doesn't matter. */
export function openLogFile(
  path: string,
  options: {
    /** Size of both files together. */
    readonly maxBytes: number;
    /** Called once, when the first write fails. */
    onFault?(error: unknown): void;
  },
): LogFile {
  const { maxBytes, onFault } = options;
  const file = createRotatingFile(path, maxBytes);
  let waiting: string[] = [];
  let size = 0;
  let dropped = 0;
  let pausedUntil = 0;
  let isFaultKnown = false;
  let writing: Promise<void> | undefined;

  const writeBatch = async (batch: readonly string[]) => {
    const lost = dropped;
    const note = lost === 0 ? '' : droppedLine(lost);
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await file.append(note + batch.join(''));
      dropped -= lost;
    } catch (error) {
      dropped += batch.length;
      pausedUntil = performance.now() + pauseMs;
      if (!isFaultKnown) onFault?.(error);
      isFaultKnown = true;
    }
  };
  const drain = async () => {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      size = 0;
      await writeBatch(batch);
    }
    writing = undefined;
  };
  return {
    write: (line) => {
      if (size + line.length > maxWaiting || performance.now() < pausedUntil) {
        dropped += 1;
        return;
      }
      waiting.push(line);
      size += line.length;
      writing ??= drain();
    },
    close: async () => {
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, closeMs);
      const closed = Promise.resolve(writing)
        .then(file.close)
        .catch(() => undefined);
      await Promise.race([closed, late.promise]);
      clearTimeout(timer);
    },
  };
}

function droppedLine(lines: number): string {
  const line = { level: 'warn', time: new Date().toISOString(), pid: process.pid, lines };
  return `${JSON.stringify({ ...line, event: 'log.lines-dropped' })}\n`;
}
