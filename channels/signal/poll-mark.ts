/**
 * A file that exists from before the first poll until the last one has been dealt with. One that is still there at a start
 * was left by a kill or a power cut: what a poll had fetched then is lost. It is written once, not for each poll: a
 * poll is in hand most of the time, so that a finer mark would spare few false reports for a sync of the disk each time.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from './spool.ts';

export class PollMark {
  readonly #path: string;
  /** Another process may have marked meanwhile, which then receives. */
  readonly #own = crypto.randomUUID();

  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves when the mark is on disk; true: an earlier one was left. Rejects with the disk's own error. */
  async set(): Promise<boolean> {
    const left = await this.#read();
    await writeFile(this.#path, this.#own, { mode: 0o600, flush: true });
    await syncFolder(dirname(this.#path));
    return left !== undefined;
  }

  async clear(): Promise<void> {
    if ((await this.#read()) === this.#own) await rm(this.#path, { force: true });
  }

  #read(): Promise<string | undefined> {
    return readFile(this.#path, 'utf8').catch(() => undefined);
  }
}
