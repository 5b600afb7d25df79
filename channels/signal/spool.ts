/**
 * Messages that the store can't accept now, in the order in which they came: one line of JSON each, on disk (fdatasync)
 * before `append` resolves. Every process on the folder may append. The receiving process sets the file aside before it
 * reads it, and removes it once everything in it has been stored. Replaying it after a crash is safe, since the store
 * knows each event by its key. A line that a crash cut off was never confirmed, and is left out.
 */

import { type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { createMutex } from '#channel-kit/in-turn.ts';
import { parseJson } from '#channel-kit/parse-json.ts';
import { ParleyError } from '#contracts/errors.ts';

export type SpoolEntry = {
  /** When it arrived, ms since the epoch. */
  readonly at: number;
  /** JSON as it came; anything else as text. */
  readonly raw: string;
};

export type Page = { readonly entries: readonly SpoolEntry[]; readonly end: number };

const newline = 10;
const pageEntries = 50;
const chunkBytes = 256 * 1024;

/** Names of files that were set aside: numbered in order, and unique to the process that chose them. */
const asideForm = /^spool-(\d{9})-[\da-f-]{36}\.jsonl$/;

export class Spool {
  /** Where appended lines go. */
  readonly #path: string;
  readonly #maxBytes: number;
  /** The file that was set aside, and where its next page starts. */
  #reading: { readonly path: string; readonly offset: number } | undefined;
  #isEmpty = true;
  readonly #inTurn = createMutex();

  constructor(folder: string, maxBytes: number) {
    this.#path = join(folder, 'spool.jsonl');
    this.#maxBytes = maxBytes;
  }

  /** True if nothing waits that this process has added or seen. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** Looks for entries that other processes have added or earlier ones have left. */
  look(): Promise<void> {
    return this.#inTurn(() => this.#look());
  }

  /** Resolves when the entry is on disk. Throws ParleyError `store_full` at the limit, or the disk's own error. */
  append(entry: SpoolEntry): Promise<void> {
    return this.#inTurn(async () => {
      const line = Buffer.from(`${JSON.stringify(entry)}\n`);
      if (line.length + (await this.#bytes()) > this.#maxBytes)
        throw new ParleyError('store_full', 'the file for messages that the store can’t accept is full');
      for (let isKept = false; !isKept; ) isKept = await this.#write(line);
      this.#isEmpty = false;
    });
  }

  /** Returns the oldest entries that haven't been taken out yet; undefined if there are none. */
  peek(): Promise<Page | undefined> {
    return this.#inTurn(async () => {
      for (;;) {
        this.#reading ??= await this.#oldest();
        if (this.#reading === undefined) return void (await this.#look());
        const { path, offset } = this.#reading;
        const lines = await readLines(path, offset);
        const end = offset + lines.reduce((sum, line) => sum + line.length, 0);
        if (lines.length > 0) return { entries: lines.map(readEntry), end };
        await this.#remove(path);
      }
    });
  }

  /** Call it when the lines before `end` have been stored. */
  consume(end: number): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#reading !== undefined) this.#reading = { ...this.#reading, offset: end };
    });
  }

  async #look(): Promise<void> {
    this.#isEmpty = (await this.#bytes()) === 0;
  }

  async #bytes(): Promise<number> {
    const sizes = await Promise.all([this.#path, ...(await this.#aside())].map(sizeOf));
    return sizes.reduce((sum, size) => sum + size, 0);
  }

  /** False: the file was set aside meanwhile, and its reader may have passed the line. Writing it twice is harmless. */
  async #write(line: Buffer): Promise<boolean> {
    await using file = await open(this.#path, 'a+', 0o600);
    const { size, ino } = await file.stat();
    if (await isCutOff(file, size)) {
      await this.#setAside();
      return false;
    }
    // In one call, so that no other process can write into the middle of it.
    const { bytesWritten } = await file.write(line);
    if (bytesWritten < line.length)
      throw new ParleyError(
        'store_full',
        'the disk has no room left for messages that the store can’t accept',
      );
    await file.datasync();
    await syncFolder(dirname(this.#path));
    return (await stat(this.#path).catch(ifGone))?.ino === ino;
  }

  async #oldest(): Promise<{ path: string; offset: number } | undefined> {
    if ((await this.#aside()).length === 0 && (await sizeOf(this.#path)) > 0) await this.#setAside();
    const [path] = await this.#aside();
    return path === undefined ? undefined : { path, offset: 0 };
  }

  /** Returns the files that were set aside, oldest first. */
  async #aside(): Promise<readonly string[]> {
    const folder = dirname(this.#path);
    const names = (await readdir(folder)).filter((name) => asideForm.test(name));
    return names.sort().map((name) => join(folder, name));
  }

  async #setAside(): Promise<void> {
    const last = basename((await this.#aside()).at(-1) ?? '');
    const number = Number(asideForm.exec(last)?.[1] ?? 0) + 1;
    const name = `spool-${String(number).padStart(9, '0')}-${crypto.randomUUID()}.jsonl`;
    await rename(this.#path, join(dirname(this.#path), name)).catch(ifGone);
  }

  async #remove(path: string): Promise<void> {
    await rm(path, { force: true });
    this.#reading = undefined;
  }
}

/** Ignores a missing file, because another process may move or remove it at any time. */
function ifGone(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
  throw error;
}

async function sizeOf(path: string): Promise<number> {
  const entry = await stat(path).catch(ifGone);
  return entry?.isFile() ? entry.size : 0;
}

/** Says whether the file ends in half a line, which would swallow the next one. */
async function isCutOff(file: FileHandle, size: number): Promise<boolean> {
  return size > 0 && (await readAt(file, size - 1, 1)).at(0) !== newline;
}

/** Syncs a folder: a new file only survives a power cut if its folder's entry is on disk. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

/** Returns complete lines with their ends, from `offset` on: at most a page; none if only a cut-off line is left. */
async function readLines(path: string, offset: number): Promise<readonly Buffer[]> {
  await using file = await open(path, 'r').catch(ifGone);
  if (file === undefined) return [];
  const { size } = await file.stat();
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

/** Passes an unknown line on as it is, to be recorded as unreadable. */
function readEntry(line: Buffer): SpoolEntry {
  const text = line.toString().trimEnd();
  try {
    const { at, raw } = parseJson(text) as Partial<SpoolEntry>;
    if (typeof at === 'number' && typeof raw === 'string') return { at, raw };
  } catch {
    // Returned as text below.
  }
  return { at: 0, raw: text };
}
