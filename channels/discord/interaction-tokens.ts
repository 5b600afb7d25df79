/**
 * Tokens that can answer a slash command for 15 minutes, kept in a file, so that after a crash the next process can
 * still put the answer in the place of "thinking…". Losing the file costs only that place: the answer is then sent as
 * a message.
 */
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createMutex } from '#channel-kit/in-turn.ts';
import { replaceFile } from '#channel-kit/state-file.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { isSnowflake, timeOf } from './ids.ts';

export type InteractionToken = {
  /** The interaction's id. */
  readonly id: string;
  readonly application: string;
  readonly token: string;
};

export type InteractionTokensDeps = { readonly path: string; readonly clock: Clock; readonly log: Log };

/** A little less than Discord's 15 minutes. */
export const tokenLifetimeMs = 14 * 60_000;
/** Shorter, so that no other process answers just as the one that received the command removes "thinking…". */
const recallMs = tokenLifetimeMs - 30_000;
const dropped = 'dropped';
/** How many lines are added before expired ones are dropped. */
const pruneAfter = 1_000;

export class InteractionTokens {
  readonly #deps: InteractionTokensDeps;
  #added = 0;
  /** Lines are written one at a time, so that pruning loses none. */
  readonly #inTurn = createMutex();

  private constructor(deps: InteractionTokensDeps) {
    this.#deps = deps;
  }

  /** Opens the file and drops expired tokens. */
  static async open(deps: InteractionTokensDeps): Promise<InteractionTokens> {
    const tokens = new InteractionTokens(deps);
    await tokens.#prune();
    return tokens;
  }

  /** Never throws. Resolves when the token is written. */
  keep({ id, application, token }: InteractionToken): Promise<void> {
    return this.#append(`${id} ${application} ${token}`);
  }

  /** From now on, no process of this data folder recalls the token. Never throws. */
  drop(id: string): Promise<void> {
    return this.#append(`${id} ${dropped}`);
  }

  #append(line: string): Promise<void> {
    return this.#inTurn(async () => {
      this.#added += 1;
      if (this.#added % pruneAfter === 0) await this.#prune();
      try {
        await appendFile(this.#deps.path, `${line}\n`, { mode: 0o600 });
      } catch (error) {
        this.#deps.log.info({ error: String(error) }, 'discord.token-not-kept');
      }
    });
  }

  /**
   * Returns the token of an interaction that any process of this data folder received; undefined once it has expired
   * or was dropped.
   */
  async recall(id: string): Promise<InteractionToken | undefined> {
    return (await this.#read()).find((one) => one.id === id);
  }

  async #prune(): Promise<void> {
    const { path, log } = this.#deps;
    try {
      const kept = (await this.#read()).map(
        ({ id, application, token }) => `${id} ${application} ${token}\n`,
      );
      await mkdir(dirname(path), { recursive: true });
      await replaceFile(path, kept.join(''));
    } catch (error) {
      log.info({ error: String(error) }, 'discord.tokens-not-pruned');
    }
  }

  async #read(): Promise<readonly InteractionToken[]> {
    const { path, clock } = this.#deps;
    const text = await readFile(path, 'utf8').catch(() => ''); // The file doesn't exist before the first start.
    const lines = text.split('\n').map((line) => line.split(' '));
    const gone = new Set(lines.flatMap(([id, mark]) => (mark === dropped ? [id] : [])));
    return lines.flatMap(([id = '', application = '', token = '']) => {
      const isWhole = isSnowflake(id) && isSnowflake(application) && token !== '' && !gone.has(id);
      return isWhole && clock.now() < timeOf(id) + recallMs ? [{ id, application, token }] : [];
    });
  }
}
