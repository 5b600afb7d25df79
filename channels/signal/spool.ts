/**
 * Messages that the store cannot take now, in the order in which they came: one line of JSON each, on
 * disk (fdatasync) before `append` resolves. A line that a crash cut off was promised to nobody, and is
 * removed. What has been stored is taken out only when all of it has: replaying the rest after a crash
 * is safe, since the store knows each event by its key.
 */

import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parseJson } from '#channel-kit/parse-json.ts';
import { ParleyError } from '#contracts/errors.ts';

export type SpoolEntry = {
  /** When it came, ms since the epoch. */
  readonly at: number;
  /** JSON as it came; anything else as text. */
  readonly raw: string;
};

export type Page = { readonly entries: readonly SpoolEntry[]; readonly end: number };

const newline = 10;
const pageEntries = 50;
const chunkBytes = 256 * 1024;

export class Spool {
  readonly #path: string;
  readonly #maxBytes: number;
  /** Where the next page begins, and where the file ends. */
  #offset = 0;
  #size: number | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
  }

  /** True when nothing waits. Only after `ready`. */
  get isEmpty(): boolean {
    return this.#offset >= (this.#size ?? 0);
  }

  /** Looks once at what an earlier process left, and mends it. */
  ready(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#size === undefined) this.#size = await mend(this.#path);
    });
  }

  /** Resolves when the entry is on disk. Throws ParleyError `store_full` at the limit, or the disk's own error. */
  append(entry: SpoolEntry): Promise<void> {
    return this.#inTurn(async () => {
      const size = this.#size ?? (await mend(this.#path));
      const line = Buffer.from(`${JSON.stringify(entry)}\n`);
      if (size + line.length > this.#maxBytes) {
        throw new ParleyError('store_full', 'the file for what the store cannot take is full');
      }
      const file = await openFile(this.#path, 'a');
      try {
        await file.appendFile(line);
        await file.datasync();
        this.#size = size + line.length;
      } catch (error) {
        // Half a line would swallow the next one.
        await file.truncate(size).catch(() => undefined);
        throw error;
      } finally {
        await file.close();
      }
    });
  }

  /** The oldest entries that are not taken out yet. */
  peek(): Promise<Page> {
    return this.#inTurn(async () => {
      const size = this.#size ?? 0;
      if (this.#offset >= size) return { entries: [], end: this.#offset };
      const file = await openFile(this.#path, 'r');
      try {
        const lines = await readLines(file, this.#offset, size);
        return { entries: lines.map(readEntry), end: this.#offset + lines.reduce(sumOfLengths, 0) };
      } finally {
        await file.close();
      }
    });
  }

  /** Lines before `end` have been stored. */
  consume(end: number): Promise<void> {
    return this.#inTurn(async () => {
      this.#offset = end;
      if (this.#offset < (this.#size ?? 0)) return;
      const file = await openFile(this.#path, 'r+');
      try {
        await file.truncate(0);
        await file.datasync();
      } finally {
        await file.close();
      }
      this.#offset = 0;
      this.#size = 0;
    });
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(act);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }
}

/** The size of the whole lines in the file; a last line without an end is cut off. */
async function mend(path: string): Promise<number> {
  const file = await openFile(path, 'a+');
  try {
    const { size } = await file.stat();
    const content = size === 0 ? Buffer.alloc(0) : (await readAt(file, 0, size)).subarray(0, size);
    const whole = content.lastIndexOf(newline) + 1;
    if (whole < size) await file.truncate(whole);
    await file.sync();
    await syncFolder(dirname(path));
    return whole;
  } finally {
    await file.close();
  }
}

function openFile(path: string, flags: string): Promise<FileHandle> {
  return open(path, flags, 0o600);
}

/** A new file is there after a power cut only if its folder says so. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Whole lines with their ends, from `offset` on: at least one, at most a page. */
async function readLines(file: FileHandle, offset: number, size: number): Promise<readonly Buffer[]> {
  for (let bytes = chunkBytes; ; bytes *= 4) {
    const content = await readAt(file, offset, Math.min(bytes, size - offset));
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = content.indexOf(newline); end !== -1; end = content.indexOf(newline, start)) {
      lines.push(content.subarray(start, end + 1));
      start = end + 1;
      if (lines.length === pageEntries) break;
    }
    if (lines.length > 0 || bytes >= size - offset) return lines;
  }
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const content = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(content, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return content.subarray(0, filled);
}

function sumOfLengths(sum: number, line: Buffer): number {
  return sum + line.length;
}

/** A foreign line is passed on as it is, and will be kept as unreadable. */
function readEntry(line: Buffer): SpoolEntry {
  const text = line.toString().trimEnd();
  try {
    const { at, raw } = parseJson(text) as Partial<SpoolEntry>;
    if (typeof at === 'number' && typeof raw === 'string') return { at, raw };
  } catch {
    // Told below.
  }
  return { at: 0, raw: text };
}
