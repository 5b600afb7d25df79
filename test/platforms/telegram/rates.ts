/** What Telegram allows a bot: "about 30 messages per second" in all chats, and 20 a minute in a group. */
export type TelegramRates = { readonly perSecond: number; readonly perGroupMinute: number };

export const telegramRates: TelegramRates = { perSecond: 30, perGroupMinute: 20 };

/** Calls that show nothing to anybody, and aren't limited here. */
const isFree = /^(?:get|answer|delete|set)/;

/** Counts calls in windows of real time, because clients wait in real time. Refused calls count, too. */
export class TelegramLimiter {
  readonly #rates: TelegramRates;
  #second = { endsAt: 0, used: 0 };
  readonly #groups = new Map<number, { endsAt: number; used: number }>();

  constructor(rates: TelegramRates) {
    this.#rates = rates;
  }

  /** Returns for how many seconds the bot has to wait; undefined if the call may be made. */
  take(method: string, chatId: number): number | undefined {
    if (isFree.test(method)) return undefined;
    const now = Date.now();
    if (this.#second.endsAt <= now) this.#second = { endsAt: now + 1_000, used: 0 };
    this.#second.used += 1;
    if (this.#second.used > this.#rates.perSecond) return 1;
    if (!(chatId < 0) || method === 'sendChatAction') return undefined;
    const known = this.#groups.get(chatId);
    const group = known && known.endsAt > now ? known : { endsAt: now + 60_000, used: 0 };
    group.used += 1;
    this.#groups.set(chatId, group);
    return group.used > this.#rates.perGroupMinute ? Math.ceil((group.endsAt - now) / 1_000) : undefined;
  }
}
