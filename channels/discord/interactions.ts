/**
 * Slash commands and buttons want a first sign within 3 seconds, so they are deferred at once; the
 * answer then takes the place of "thinking…", also when the process has died in between.
 */
import { InteractionResponseType, InteractionType } from 'discord.js';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { Clock } from '#contracts/clock.ts';
import type { PartKey } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import type { Deferral, DiscordApi } from './api.ts';
import { isInteractionGone, reasonOf } from './failures.ts';
import type { Bot } from './ids.ts';
import { type InteractionToken, type InteractionTokens, tokenLifetimeMs } from './interaction-tokens.ts';
import type { TextBody } from './outbound.ts';
import type { Interaction } from './payload-schema.ts';

export type InteractionsDeps = {
  readonly api: Pick<
    DiscordApi,
    'defer' | 'editOriginal' | 'isThinking' | 'removeOriginal' | 'tellPrivately'
  >;
  readonly bot: Bot;
  readonly clock: Clock;
  readonly log: Log;
  readonly tokens: Pick<InteractionTokens, 'drop' | 'keep' | 'recall'>;
};

/** A press waits here for some milliseconds; one that is forgotten is stored anyway. */
const mostPresses = 1000;

export type InteractionReply = {
  /** The interaction's id. */
  readonly id: string;
  readonly key: PartKey;
  readonly body: TextBody;
  readonly signal: AbortSignal;
};

type Open = InteractionToken & {
  /** False when Discord did not take the deferral. */
  readonly isDeferred: Promise<boolean>;
  readonly end: AbortController;
  /** The part that is its answer, sent or on its way. */
  answer: PartKey | undefined;
  /** Its place is being taken away: what is put there would go with it. */
  isWithdrawn: boolean;
};

export class Interactions {
  readonly #deps: InteractionsDeps;
  readonly #open = new Map<string, Open>();
  /** Presses that are being stored. */
  readonly #presses = new Map<string, Pick<Open, 'id' | 'application' | 'token' | 'isDeferred'>>();

  constructor(deps: InteractionsDeps) {
    this.#deps = deps;
  }

  /** Never waits, never throws. A repeated event changes nothing. */
  receive({ id, token, type, application_id: application = this.#deps.bot.id }: Interaction): void {
    if (type === InteractionType.MessageComponent && !this.#presses.has(id)) {
      const isDeferred = this.#defer({ id, token }, InteractionResponseType.DeferredMessageUpdate);
      this.#presses.set(id, { id, application, token, isDeferred });
      if (this.#presses.size > mostPresses) this.#presses.delete([...this.#presses.keys()][0] ?? id);
    }
    if (type !== InteractionType.ApplicationCommand || this.#open.has(id)) return;
    const end = new AbortController();
    const isDeferred = this.#defer({ id, token }, InteractionResponseType.DeferredChannelMessageWithSource);
    this.#open.set(id, { id, application, token, isDeferred, end, answer: undefined, isWithdrawn: false });
    void this.#deps.tokens.keep({ id, application, token });
    void this.#deps.clock.wait(tokenLifetimeMs, end.signal).then(() => this.#expire(id));
  }

  /**
   * A press has been stored: the person who pressed is told what the message itself doesn't say. What an earlier
   * process stored says nothing more.
   */
  pressed(id: string, acceptance: Acceptance | undefined): void {
    const press = this.#presses.get(id);
    this.#presses.delete(id);
    if (press === undefined || acceptance?.kind !== 'pressed') return;
    const { result, text } = acceptance;
    // The message is edited to say so.
    if (result === 'approved' || result === 'denied') return;
    void press.isDeferred
      .then(async (isDeferred) => {
        if (isDeferred) await this.#deps.api.tellPrivately(press.application, press.token, text);
      })
      .catch((error: unknown) => {
        this.#deps.log.info({ reason: reasonOf(error) }, 'discord.press-not-answered');
      });
  }

  /** Nobody is going to answer what was not let in: "thinking…" goes away. */
  settled(id: string, acceptance: Acceptance | undefined): void {
    if (acceptance?.kind === 'refused' || acceptance?.kind === 'ignored') void this.#withdraw(id);
  }

  /**
   * Puts the part in the place of "thinking…"; safe to repeat for the same part. Resolves with the id of the
   * message, or undefined when it cannot be answered so: this process didn't receive it, it has expired, or it
   * was answered before. Throws what the call throws.
   */
  async answer({ id, key, body, signal }: InteractionReply): Promise<string | undefined> {
    const one = this.#open.get(id);
    if (one === undefined || one.isWithdrawn || (one.answer !== undefined && one.answer !== key))
      return undefined;
    one.answer = key;
    if (!(await one.isDeferred)) return this.#forget(id);
    return (await this.#replace(one, { body, signal })) ?? this.#forget(id);
  }

  /**
   * As `answer`, for an interaction that an earlier process received. The caller has seen "thinking…", so
   * nothing has answered it yet.
   */
  async answerLate({ id, body, signal }: Omit<InteractionReply, 'key'>): Promise<string | undefined> {
    if (this.#open.has(id)) return undefined;
    const known = await this.#deps.tokens.recall(id);
    return known && this.#replace(known, { body, signal });
  }

  stop(): void {
    for (const { end } of this.#open.values()) end.abort();
  }

  async #defer(
    { id, token }: { readonly id: string; readonly token: string },
    type: Deferral,
  ): Promise<boolean> {
    try {
      await this.#deps.api.defer(id, token, type);
      return true;
    } catch (error) {
      const reason = reasonOf(error);
      this.#deps.log.warn({ reason }, 'discord.not-deferred');
      return false;
    }
  }

  async #replace(
    { application, token }: InteractionToken,
    answer: Pick<InteractionReply, 'body' | 'signal'>,
  ): Promise<string | undefined> {
    try {
      return await this.#deps.api.editOriginal(application, token, answer);
    } catch (error) {
      if (isInteractionGone(error)) return undefined;
      throw error;
    }
  }

  #expire(id: string): void {
    const one = this.#open.get(id);
    if (one === undefined || one.end.signal.aborted) return;
    if (one.answer === undefined && !one.isWithdrawn) void this.#withdraw(id);
    this.#forget(id);
  }

  /** Another process of this data folder may have put the answer there: it stays. */
  async #withdraw(id: string): Promise<void> {
    const one = this.#open.get(id);
    if (one === undefined || one.answer !== undefined || one.isWithdrawn) return;
    one.isWithdrawn = true;
    const { api, log, tokens } = this.#deps;
    await tokens.drop(id);
    if (!(await one.isDeferred)) return;
    try {
      if (await api.isThinking(one.application, one.token))
        await api.removeOriginal(one.application, one.token);
    } catch (error) {
      log.info({ reason: reasonOf(error) }, 'discord.deferral-not-removed');
    }
  }

  #forget(id: string): undefined {
    this.#open.get(id)?.end.abort();
    this.#open.delete(id);
  }
}
