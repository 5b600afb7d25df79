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
/** Shortest time between two calls that messages to another bot's name cause, ms. */
const minGapMs = 60_000;
/** How long messages wait for the answer, ms; without one, they are read with the known name. */
const patienceMs = 2_000;

/**
 * Facts about this bot that its owner may change in BotFather while Parley runs: the user name, by which mentions and
 * commands address it, and privacy mode. Requested once an hour, and before a message to an unknown bot name is read.
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
    this.#nextForMessagesAt = this.#askedAt + minGapMs;
    this.#isPrivacyOn = isPrivacyOn(me);
    this.#report();
  }

  /** The name to show: the user name, which only Telegram's own bots can lack. */
  get name(): string {
    return this.bot.username || this.bot.account;
  }

  /** Asks if the last answer is an hour old. Never throws; without an answer, the last one stays valid. */
  async refresh(signal: AbortSignal): Promise<void> {
    if (this.#isPast(this.#nextAt)) await this.#ask(signal);
  }

  /**
   * Asks if one of the events addresses a bot by a name that isn't known to be this bot's, at most once a minute.
   * Resolves with true if this bot's name has changed, so that the events have to be read again. Never throws.
   */
  async refreshFor(events: readonly InboundEnvelope[], signal: AbortSignal): Promise<boolean> {
    if (!this.#isPast(this.#nextForMessagesAt) || !events.some(addressesOther)) return false;
    const before = this.bot.username;
    await this.#ask(signal);
    return this.bot.username !== before;
  }

  /** A clock that was set back must not lengthen the wait. */
  #isPast(time: number): boolean {
    const now = this.#deps.clock.now();
    return now >= time || now < this.#askedAt;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { api, clock, log } = this.#deps;
    this.#askedAt = clock.now();
    // Holds until the call has answered.
    this.#nextAt = this.#askedAt + longestWaitMs;
    this.#nextForMessagesAt = this.#askedAt + minGapMs;
    try {
      const me = await withLimit(patienceMs, signal, (limited) => api.getMe(limited));
      if (me?.id !== this.bot.id) throw new Error('another account answered');
      this.#nextAt = this.#askedAt + believedForMs;
      const { username } = botOf(me);
      if (username === this.bot.username && isPrivacyOn(me) === this.#isPrivacyOn) return;
      this.bot.username = username;
      this.#isPrivacyOn = isPrivacyOn(me);
      this.#report();
    } catch (error) {
      const asked = Math.max(minGapMs, retryAfterMs(readRefusal(error)?.askedWaitMs));
      this.#nextForMessagesAt = this.#askedAt + asked;
      log.debug({ reason: reasonOf(error) }, 'telegram.identity-not-refreshed');
    }
  }

  #report(): void {
    const { account, username } = this.bot;
    this.#deps.log.info({ account, username, isPrivacyOn: this.#isPrivacyOn }, 'telegram.identified');
  }
}

function isPrivacyOn(me: Me): boolean {
  return !me.can_read_all_group_messages;
}

/** Bot names end in `bot`, so a person's name causes no call. */
const botName = /@\w{2,29}bot(?!\w)/i;

function addressesOther({ chat, event }: InboundEnvelope): boolean {
  return chat.kind === 'group' && event.kind === 'message' && !event.mentionsBot && botName.test(event.text);
}
