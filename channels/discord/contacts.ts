/**
 * Facts needed before the store has any: since when the bot has been listening, and which direct channels it has
 * seen. A bot can't list direct channels, so a first message that was lost in a crash before it was stored could
 * never be found again.
 */
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Log } from '#contracts/log.ts';
import { isSnowflake } from './ids.ts';

export class Contacts {
  readonly #path: string;
  readonly #log: Log;
  readonly #channels: Map<string, string>;
  /** A crash cut the last line off, so the next one has to start on a new line. */
  #isCut: boolean;
  /** Nothing before this id matters: the bot wasn't listening yet. */
  readonly since: string;

  private constructor(path: string, log: Log, known: Known) {
    this.#path = path;
    this.#log = log;
    this.#channels = known.channels;
    this.#isCut = known.isCut;
    this.since = known.since;
  }

  /** `now`: the id of the current moment, for the first start. */
  static async open(
    path: string,
    { now, log }: { readonly now: string; readonly log: Log },
  ): Promise<Contacts> {
    // The file doesn't exist before the first start on this data folder.
    // The file doesn't exist before the first start on this data folder.
    const known = parse(await readFile(path, 'utf8').catch(() => ''));
    const contacts = new Contacts(path, log, { ...known, since: known.since ?? now });
    if (known.since === undefined) await contacts.#append(`since ${now}`);
    return contacts;
  }

  get channels(): readonly string[] {
    return [...this.#channels.keys()];
  }

  has(channel: string): boolean {
    return this.#channels.has(channel);
  }

  /** Returns the id after which messages have to be read; undefined for a channel never seen. */
  after(channel: string): string | undefined {
    return this.#channels.get(channel);
  }

  /** Resolves when the channel is on the disk. `after`: everything up to this id is known or doesn't matter. */
  async add(channel: string, after: string): Promise<void> {
    if (this.#channels.has(channel)) return;
    this.#channels.set(channel, after);
    await this.#append(`${channel} ${after}`);
  }

  async #append(line: string): Promise<void> {
    try {
      await mkdir(dirname(this.#path), { recursive: true });
      const text = `${this.#isCut ? '\n' : ''}${line}\n`;
      await appendFile(this.#path, text, { mode: 0o600, flush: true });
      this.#isCut = false;
    } catch (error) {
      // The line only guards against a crash in the next milliseconds; the message itself isn't at risk.
      this.#log.warn({ error: String(error) }, 'discord.contacts-not-written');
    }
  }
}

type Read = {
  readonly since: string | undefined;
  readonly channels: Map<string, string>;
  readonly isCut: boolean;
};
type Known = Read & { readonly since: string };

/** Ignores a last line that a crash cut off. */
function parse(text: string): Read {
  const lines = text.split('\n').slice(0, -1);
  const channels = new Map<string, string>();
  let since: string | undefined;
  for (const line of lines) {
    const [name = '', id = ''] = line.split(' ');
    if (!isSnowflake(id)) continue;
    if (name === 'since') since ??= id;
    else if (isSnowflake(name)) channels.set(name, id);
  }
  return { since, channels, isCut: text !== '' && !text.endsWith('\n') };
}
