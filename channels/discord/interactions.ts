/**
 * Slash commands and buttons must be acknowledged within 3 seconds, so they are deferred immediately; the answer then
 * takes the place of "thinking…", even if the process died in between.
 */

import { InteractionResponseType, InteractionType } from 'discord.js';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { ChannelDeps } from '#contracts/channel.ts';
import type { PartKey } from '#contracts/ids.ts';
import type { Deferral, DiscordApi } from './api.ts';
import { isInteractionGone, reasonOf } from './failures.ts';
import type { Bot } from './ids.ts';
import { type InteractionToken, type InteractionTokens, tokenLifetimeMs } from './interaction-tokens.ts';
import type { TextBody } from './outbound.ts';
import type { Interaction } from './payload-schema.ts';

export type InteractionsDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly api: Pick<DiscordApi, 'defer' | 'editOriginal' | 'original' | 'removeOriginal' | 'tellPrivately'>;
  readonly bot: Bot;
  readonly tokens: Pick<InteractionTokens, 'drop' | 'keep' | 'recall'>;
};

/** A press stays here for a few milliseconds; one that is dropped is stored anyway. */
const maxPresses = 1000;

export type InteractionReply = {
  /** The interaction's id. */
  readonly id: string;
  readonly key: PartKey;
  readonly body: TextBody;
  readonly signal: AbortSignal;
};

/** Result of answering an interaction with a part. */
export type PlaceResult =
  | { readonly kind: 'answered'; readonly messageId: string }
  /** Another part has the place, or nothing can be put there any more: this part is sent as a message. */
  | { readonly kind: 'taken' }
  /** There is no token here, so it isn't known whether an earlier process has put the part there. */
  | { readonly kind: 'unknown' };

type Open = InteractionToken & {
  /** False if Discord didn't accept the deferral. */
  readonly isDeferred: Promise<boolean>;
  readonly end: AbortController;
  /** The part that is its answer, sent or on its way. */
  answer: PartKey | undefined;
  /** Its place is being removed, and anything put there would be removed too. */
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

  /** Defers the interaction. Never waits, never throws. A repeated event changes nothing. */
  receive({ id, token, type, application_id: application = this.#deps.bot.id }: Interaction): void {
    if (type === InteractionType.MessageComponent && !this.#presses.has(id)) {
      const isDeferred = this.#defer({ id, token }, InteractionResponseType.DeferredMessageUpdate);
      this.#presses.set(id, { id, application, token, isDeferred });
      if (this.#presses.size > maxPresses) this.#presses.delete([...this.#presses.keys()][0] ?? id);
    }
    if (type !== InteractionType.ApplicationCommand || this.#open.has(id)) return;
    const end = new AbortController();
    const isDeferred = this.#defer({ id, token }, InteractionResponseType.DeferredChannelMessageWithSource);
    this.#open.set(id, { id, application, token, isDeferred, end, answer: undefined, isWithdrawn: false });
    void this.#deps.tokens.keep({ id, application, token });
    void this.#deps.clock.wait(tokenLifetimeMs, end.signal).then(() => this.#expire(id));
  }

  /**
   * Call it when a press has been stored: shows the person who pressed what the message itself doesn't say. A press
   * stored by an earlier process shows nothing more.
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

  /** Removes "thinking…" from a command that wasn't accepted, because nothing will answer it. */
  settled(id: string, acceptance: Acceptance | undefined): void {
    if (acceptance?.kind === 'refused' || acceptance?.kind === 'ignored') void this.#withdraw(id);
  }

  /**
   * Puts the part in the place of "thinking…"; safe to repeat for the same part. Throws what the call throws.
   */
  async answer(reply: InteractionReply): Promise<PlaceResult> {
    const one = this.#open.get(reply.id);
    if (one === undefined) return this.#answerLate(reply);
    if (one.isWithdrawn || (one.answer !== undefined && one.answer !== reply.key)) return { kind: 'taken' };
    one.answer = reply.key;
    if (await one.isDeferred) {
      const answered = await this.#replace(one, reply);
      if (answered.kind === 'answered') return answered;
    }
    this.#forget(reply.id);
    return this.#answerLate(reply);
  }

  /** Answers an interaction that an earlier process received: the message in its place decides. */
  async #answerLate(reply: InteractionReply): Promise<PlaceResult> {
    const known = await this.#deps.tokens.recall(reply.id);
    if (known === undefined) return { kind: 'unknown' };
    try {
      const { id, content, isThinking } = await this.#deps.api.original(
        known.application,
        known.token,
        reply.signal,
      );
      if (isThinking) return await this.#replace(known, reply);
      return content === reply.body.content.trim() ? { kind: 'answered', messageId: id } : { kind: 'taken' };
    } catch (error) {
      if (isInteractionGone(error)) return { kind: 'taken' };
      throw error;
    }
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
  ): Promise<PlaceResult> {
    try {
      return { kind: 'answered', messageId: await this.#deps.api.editOriginal(application, token, answer) };
    } catch (error) {
      if (isInteractionGone(error)) return { kind: 'taken' };
      throw error;
    }
  }

  #expire(id: string): void {
    const one = this.#open.get(id);
    if (one === undefined || one.end.signal.aborted) return;
    if (one.answer === undefined && !one.isWithdrawn) void this.#withdraw(id);
    this.#forget(id);
  }

  /** Removes "thinking…". An answer that another process of this data folder has put there stays. */
  async #withdraw(id: string): Promise<void> {
    const one = this.#open.get(id);
    if (one === undefined || one.answer !== undefined || one.isWithdrawn) return;
    one.isWithdrawn = true;
    const { api, log, tokens } = this.#deps;
    await tokens.drop(id);
    if (!(await one.isDeferred)) return;
    try {
      const { isThinking } = await api.original(one.application, one.token);
      if (isThinking) await api.removeOriginal(one.application, one.token);
    } catch (error) {
      log.info({ reason: reasonOf(error) }, 'discord.deferral-not-removed');
    }
  }

  #forget(id: string): void {
    this.#open.get(id)?.end.abort();
    this.#open.delete(id);
  }
}
