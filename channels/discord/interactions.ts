/**
 * Slash commands and buttons want a first sign within 3 seconds, so they are deferred at once; the
 * answer then takes the place of "thinking…". The tokens live in this process only: an answer that
 * another process delivers is an ordinary message.
 */
import type { Acceptance } from '#contracts/acceptance.ts';
import type { Clock } from '#contracts/clock.ts';
import type { PartKey } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import { type DiscordApi, deferral } from './api.ts';
import { isInteractionGone, networkReason, readRefusal } from './failures.ts';
import type { Bot } from './ids.ts';
import type { TextBody } from './outbound.ts';
import type { Interaction } from './payload-schema.ts';

export type InteractionsDeps = {
  readonly api: Pick<DiscordApi, 'defer' | 'editOriginal' | 'removeOriginal'>;
  readonly bot: Bot;
  readonly clock: Clock;
  readonly log: Log;
};

export type Answering = {
  /** The interaction's id. */
  readonly id: string;
  readonly key: PartKey;
  readonly body: TextBody;
  readonly signal: AbortSignal;
};

type Open = {
  readonly token: string;
  /** False when Discord did not take the deferral. */
  readonly isDeferred: Promise<boolean>;
  readonly end: AbortController;
  /** The part that is its answer, sent or on its way. */
  answer: PartKey | undefined;
};

/** Tokens last 15 minutes. */
const lifetimeMs = 14 * 60_000;
const types = { command: 2, component: 3 } as const;

export class Interactions {
  readonly #deps: InteractionsDeps;
  readonly #open = new Map<string, Open>();

  constructor(deps: InteractionsDeps) {
    this.#deps = deps;
  }

  /** Never waits, never throws. A repeated event changes nothing. */
  receive({ id, token, type }: Interaction): void {
    if (type === types.component) void this.#defer({ id, token }, deferral.update);
    if (type !== types.command || this.#open.has(id)) return;
    const end = new AbortController();
    const isDeferred = this.#defer({ id, token }, deferral.message);
    this.#open.set(id, { token, isDeferred, end, answer: undefined });
    void this.#deps.clock.wait(lifetimeMs, end.signal).then(() => this.#expire(id));
  }

  /** Nobody is going to answer what was not let in: "thinking…" goes away. */
  settled(id: string, acceptance: Acceptance | undefined): void {
    if (acceptance?.kind === 'refused' || acceptance?.kind === 'ignored') void this.#withdraw(id);
  }

  /**
   * Puts the part in the place of "thinking…"; safe to repeat for the same part. Resolves with the id of
   * the message, or undefined when it cannot be answered here: not by this process, not any more, or it
   * was answered before. Throws what the call throws.
   */
  async answer({ id, key, body, signal }: Answering): Promise<string | undefined> {
    const one = this.#open.get(id);
    if (one === undefined || (one.answer !== undefined && one.answer !== key)) return undefined;
    one.answer = key;
    if (!(await one.isDeferred)) return this.#forget(id);
    try {
      return await this.#deps.api.editOriginal(this.#deps.bot.id, one.token, { body, signal });
    } catch (error) {
      if (isInteractionGone(error)) return this.#forget(id);
      throw error;
    }
  }

  stop(): void {
    for (const { end } of this.#open.values()) end.abort();
  }

  async #defer(
    { id, token }: { readonly id: string; readonly token: string },
    type: number,
  ): Promise<boolean> {
    try {
      await this.#deps.api.defer(id, token, type);
      return true;
    } catch (error) {
      const reason = readRefusal(error)?.reason ?? networkReason(error);
      this.#deps.log.warn({ reason }, 'discord.not_deferred');
      return false;
    }
  }

  #expire(id: string): void {
    const one = this.#open.get(id);
    if (one === undefined || one.end.signal.aborted) return;
    if (one.answer === undefined) void this.#withdraw(id);
    else this.#forget(id);
  }

  async #withdraw(id: string): Promise<void> {
    const one = this.#open.get(id);
    if (one === undefined || one.answer !== undefined) return;
    this.#forget(id);
    if (!(await one.isDeferred)) return;
    await this.#deps.api.removeOriginal(this.#deps.bot.id, one.token).catch((error: unknown) => {
      const reason = readRefusal(error)?.reason ?? networkReason(error);
      this.#deps.log.info({ reason }, 'discord.deferral_not_removed');
    });
  }

  #forget(id: string): undefined {
    this.#open.get(id)?.end.abort();
    this.#open.delete(id);
  }
}
