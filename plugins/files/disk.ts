/** All system calls on the disk of one workspace, each within the limits of `DiskCalls`. */
import type { Dir, Dirent, MakeDirectoryOptions, Stats } from 'node:fs';
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  opendir,
  readlink,
  rename,
  rmdir,
  unlink,
} from 'node:fs/promises';
import type { DiskCalls } from '#contracts/workspace-reader.ts';

/** Reads the entries of an open folder in batches; an empty batch is the end. */
export type FolderReader = AsyncDisposable & { next(): Promise<readonly Dirent[]> };

const entriesAtOnce = 256;

export class Disk {
  /** The workspace as configured. */
  readonly #root: string;
  readonly #calls: DiskCalls;

  constructor(root: string, calls: DiskCalls) {
    this.#root = root;
    this.#calls = calls;
  }

  async open(path: string, flags: number, mode?: number): Promise<DiskFile> {
    const drop = (late: FileHandle) => void this.finish(() => late.close()).catch(() => undefined);
    return new DiskFile(this, await this.#calls.run(this.#root, () => open(path, flags, mode), drop));
  }

  async openFolder(path: string): Promise<FolderReader> {
    const drop = (late: Dir) => void this.finish(() => late.close()).catch(() => undefined);
    const folder = await this.#calls.run(
      this.#root,
      () => opendir(path, { bufferSize: entriesAtOnce }),
      drop,
    );
    return {
      next: () => this.run(() => readSome(folder)),
      [Symbol.asyncDispose]: () => this.finish(() => folder.close()),
    };
  }

  lstat(path: string): Promise<Stats> {
    return this.run(() => lstat(path));
  }

  readlink(path: string): Promise<string> {
    return this.run(() => readlink(path));
  }

  async mkdir(path: string, options?: MakeDirectoryOptions): Promise<void> {
    await this.run(() => mkdir(path, options));
  }

  rename(from: string, to: string): Promise<void> {
    return this.run(() => rename(from, to));
  }

  /** Removes the file, if necessary once the disk answers again. */
  unlink(path: string): Promise<void> {
    return this.finish(() => unlink(path));
  }

  rmdir(path: string): Promise<void> {
    return this.run(() => rmdir(path));
  }

  run<T>(call: () => Promise<T>): Promise<T> {
    return this.#calls.run(this.#root, call);
  }

  finish(call: () => Promise<void>): Promise<void> {
    return this.#calls.finish(this.#root, call);
  }
}

async function readSome(folder: Dir): Promise<readonly Dirent[]> {
  const entries: Dirent[] = [];
  while (entries.length < entriesAtOnce) {
    const entry = await folder.read();
    if (entry === null) break;
    entries.push(entry);
  }
  return entries;
}

/** An open file or folder of the workspace. */
export class DiskFile implements AsyncDisposable {
  readonly disk: Disk;
  readonly #handle: FileHandle;

  constructor(disk: Disk, handle: FileHandle) {
    this.disk = disk;
    this.#handle = handle;
  }

  get fd(): number {
    return this.#handle.fd;
  }

  stat(): Promise<Stats> {
    return this.disk.run(() => this.#handle.stat());
  }

  /** Reads up to `length` bytes into `into`, starting at `offset`. Resolves with the number of bytes read. */
  async read(into: Buffer, offset: number, length: number, position: number): Promise<number> {
    return (await this.disk.run(() => this.#handle.read(into, offset, length, position))).bytesRead;
  }

  chmod(mode: number): Promise<void> {
    return this.disk.run(() => this.#handle.chmod(mode));
  }

  /** Writes all bytes and flushes them to the disk. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.disk.run(() => this.#handle.writeFile(bytes));
    await this.disk.run(() => this.#handle.datasync());
  }

  close(): Promise<void> {
    return this.disk.finish(() => this.#handle.close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
