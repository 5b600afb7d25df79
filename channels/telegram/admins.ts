import type { Clock } from '#contracts/clock.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { BotApi } from './bot-api.ts';
import { numericId } from './ids.ts';

/** The call that tells a member's rank. */
export type MemberApi = Pick<BotApi, 'getChatMember'>;

const believedForMs = 60_000;
/** A slow answer must not hold up the intake: the sender then counts as no administrator. */
const patienceMs = 2000;

/**
 * Says whether the sender of a group command administers the group, which a message itself does not
 * tell. Asked for commands only, so ordinary messages never wait for it.
 */
export class AdminLookup {
  readonly #api: () => MemberApi;
  readonly #clock: Clock;
  readonly #known = new Map<string, { readonly isAdmin: boolean; readonly until: number }>();

  constructor(deps: { readonly api: () => MemberApi; readonly clock: Clock }) {
    this.#api = deps.api;
    this.#clock = deps.clock;
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
    const known = this.#known.get(name);
    if (known !== undefined && this.#clock.now() < known.until) return known.isAdmin;
    const isAdmin = await this.#ask(chatId, userId, signal);
    if (isAdmin !== undefined) this.#remember(name, isAdmin);
    return isAdmin;
  }

  async #ask(chatId: number, userId: number, signal: AbortSignal): Promise<boolean | undefined> {
    try {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
      const { status } = await this.#api().getChatMember({ chat_id: chatId, user_id: userId }, patience);
      return status === 'creator' || status === 'administrator';
    } catch {
      return undefined; // Unknown rank is no rank; the command is then refused, not lost.
    }
  }

  #remember(name: string, isAdmin: boolean): void {
    if (this.#known.size >= 1000) this.#known.clear();
    this.#known.set(name, { isAdmin, until: this.#clock.now() + believedForMs });
  }
}

function needsRank({ chat, sender, event }: InboundEnvelope): boolean {
  const isCommand = event.kind === 'message' && event.text.startsWith('/');
  return chat.kind === 'group' && isCommand && sender.isAdmin === undefined && !sender.isBot;
}
