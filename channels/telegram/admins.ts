import { keepRecent } from '#channel-kit/keep-recent.ts';
import { retryAfterMs } from '#channel-kit/remote-number.ts';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { Clock } from '#contracts/clock.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { BotApi } from './bot-api.ts';
import { readRefusal } from './failures.ts';
import { numericId } from './ids.ts';

export type AdminLookupDeps = {
  readonly api: () => Pick<BotApi, 'getChatMember'>;
  readonly clock: Clock;
};

const believedForMs = 60_000;
const maxKnown = 1_000;
/** A slow answer must not hold up the intake, ms: the sender then doesn't count as an administrator. */
const patienceMs = 2000;

/**
 * Says whether the sender of a group command administers the group, which the message itself doesn't show. Telegram is
 * only asked for commands, so ordinary messages never wait for it.
 */
export class AdminLookup {
  readonly #deps: AdminLookupDeps;
  readonly #known = new Map<string, { readonly isAdmin: boolean; readonly until: number }>();
  readonly #asking = new Map<string, Promise<boolean | undefined>>();
  /** Until when Telegram wants no further calls. */
  #quietUntil = 0;

  constructor(deps: AdminLookupDeps) {
    this.#deps = deps;
  }

  async annotate(
    events: readonly InboundEnvelope[],
    signal: AbortSignal,
  ): Promise<readonly InboundEnvelope[]> {
    if (!events.some(needsRank)) return events;
    return Promise.all(
      events.map(async (envelope) => {
        const isAdmin = needsRank(envelope) ? await this.#isAdmin(envelope, signal) : undefined;
        return isAdmin === undefined ? envelope : { ...envelope, sender: { ...envelope.sender, isAdmin } };
      }),
    );
  }

  async #isAdmin({ route, sender }: InboundEnvelope, signal: AbortSignal): Promise<boolean | undefined> {
    const chatId = numericId(route.conversation);
    const userId = numericId(sender.id);
    if (chatId === undefined || userId === undefined) return undefined;
    const name = `${chatId}/${userId}`;
    const now = this.#deps.clock.now();
    const known = this.#known.get(name);
    if (known !== undefined && now < known.until) return known.isAdmin;
    if (now < this.#quietUntil) return undefined;
    const asking = this.#asking.get(name) ?? this.#ask(chatId, userId, signal);
    this.#asking.set(name, asking);
    const isAdmin = await asking;
    this.#asking.delete(name);
    const until = this.#deps.clock.now() + believedForMs;
    if (isAdmin !== undefined) keepRecent(this.#known, maxKnown, [name, { isAdmin, until }]);
    return isAdmin;
  }

  async #ask(chatId: number, userId: number, signal: AbortSignal): Promise<boolean | undefined> {
    const member = { chat_id: chatId, user_id: userId };
    try {
      const ask = (limited: AbortSignal) => this.#deps.api().getChatMember(member, limited);
      const { status } = await withLimit(patienceMs, signal, ask);
      return status === 'creator' || status === 'administrator';
    } catch (error) {
      const askedWaitMs = readRefusal(error)?.askedWaitMs;
      if (askedWaitMs !== undefined) this.#quietUntil = this.#deps.clock.now() + retryAfterMs(askedWaitMs);
      return undefined; // An unknown rank counts as none; the command is then refused, not lost.
    }
  }
}

function needsRank({ chat, sender, event }: InboundEnvelope): boolean {
  const isCommand = event.kind === 'message' && event.text.trimStart().startsWith('/');
  return chat.kind === 'group' && isCommand && sender.isAdmin === undefined && !sender.isBot;
}
