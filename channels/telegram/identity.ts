import { longestWaitMs, retryAfterMs } from '#channel-kit/remote-number.ts';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { ChannelDeps } from '#contracts/channel.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { BotApi } from './bot-api.ts';
import { readRefusal, reasonOf } from './failures.ts';
import { type Bot, botOf } from './ids.ts';

export type IdentityDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly api: Pick<BotApi, 'getMe'>;
};

type Me = Awaited<ReturnType<BotApi['getMe']>>;

const believedForMs = 3_600_000;
/** Between two questions that messages to another bot's name lead to. */
const leastGapMs = 60_000;
/** Messages wait for the answer: without one they are read by the name that is known. */
const patienceMs = 2_000;

/**
 * Facts about this bot that its owner changes in BotFather while Parley runs: the user name, by which mentions and
 * commands address it, and privacy mode. Asked for once an hour, and before a message to an unknown bot name is read.
 */
export class Identity {
  readonly bot: Bot;
  readonly #deps: IdentityDeps;
  #isPrivacyOn: boolean;
  #askedAt: number;
  #nextAt: number;
  #nextForMessagesAt: number;

  constructor(me: Me, deps: IdentityDeps) {
    this.bot = botOf(me);
    this.#deps = deps;
    this.#askedAt = deps.clock.now();
    this.#nextAt = this.#askedAt + believedForMs;
    this.#nextForMessagesAt = this.#askedAt + leastGapMs;
    this.#isPrivacyOn = isPrivacyOn(me);
    this.#tell();
  }

  /** The name to show: the user name, which only a bot of Telegram's own can lack. */
  get name(): string {
    return this.bot.username || this.bot.account;
  }

  /** Asks when the last answer is an hour old. Never throws; without an answer the last one stays. */
  async refresh(signal: AbortSignal): Promise<void> {
    if (this.#isPast(this.#nextAt)) await this.#ask(signal);
  }

  /**
   * Asks when one of the events addresses a bot by a name that isn't known to be ours, once a minute at most. True if
   * ours has changed: the events have to be read again. Never throws.
   */
  async refreshFor(events: readonly InboundEnvelope[], signal: AbortSignal): Promise<boolean> {
    if (!this.#isPast(this.#nextForMessagesAt) || !events.some(addressesOther)) return false;
    const before = this.bot.username;
    await this.#ask(signal);
    return this.bot.username !== before;
  }

  /** A clock that was set back must not stretch the wait. */
  #isPast(time: number): boolean {
    const now = this.#deps.clock.now();
    return now >= time || now < this.#askedAt;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { api, clock, log } = this.#deps;
    this.#askedAt = clock.now();
    // Until it has answered.
    this.#nextAt = this.#askedAt + longestWaitMs;
    this.#nextForMessagesAt = this.#askedAt + leastGapMs;
    try {
      const me = await withLimit(patienceMs, signal, (limited) => api.getMe(limited));
      if (me?.id !== this.bot.id) throw new Error('another account answers');
      this.#nextAt = this.#askedAt + believedForMs;
      const { username } = botOf(me);
      if (username === this.bot.username && isPrivacyOn(me) === this.#isPrivacyOn) return;
      this.bot.username = username;
      this.#isPrivacyOn = isPrivacyOn(me);
      this.#tell();
    } catch (error) {
      const asked = Math.max(leastGapMs, retryAfterMs(readRefusal(error)?.askedWaitMs));
      this.#nextForMessagesAt = this.#askedAt + asked;
      log.debug({ reason: reasonOf(error) }, 'telegram.identity-not-refreshed');
    }
  }

  #tell(): void {
    const { account, username } = this.bot;
    this.#deps.log.info({ account, username, isPrivacyOn: this.#isPrivacyOn }, 'telegram.identified');
  }
}

function isPrivacyOn(me: Me): boolean {
  return !me.can_read_all_group_messages;
}

/** Names of bots end in `bot`, so a person's name leads to no question. */
const botName = /@\w{2,29}bot(?!\w)/i;

function addressesOther({ chat, event }: InboundEnvelope): boolean {
  return chat.kind === 'group' && event.kind === 'message' && !event.mentionsBot && botName.test(event.text);
}
