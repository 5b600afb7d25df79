import { keepRecent } from '#channel-kit/keep-recent.ts';
import { retryAfterMs } from '#channel-kit/remote-number.ts';
import type { ChannelDeps } from '#contracts/channel.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { ConversationId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { BotApi } from './bot-api.ts';
import { readRefusal } from './failures.ts';
import { generalTopic, isPrivateChat, numericId } from './ids.ts';
import { topicOf } from './outbound.ts';
import { entitiesOf } from './outbound-entities.ts';

/** How long it is remembered whether a group has topics, ms. */
const believedForMs = 60_000;
const maxForums = 1_000;

type Topic = { readonly message_thread_id?: number };

export type PresenceDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly api: () => Pick<BotApi, 'sendChatAction' | 'sendMessageDraft' | 'getChat'>;
};

/**
 * Typing and drafts: best effort, never a fault. After a 429, nothing is shown in the conversation for as long as
 * Telegram asks, because the answer itself counts against the same limit.
 */
export class Presence {
  readonly #deps: PresenceDeps;
  readonly #quietUntil = new Map<ConversationId, number>();
  readonly #forums = new Map<ConversationId, { readonly isForum: boolean; readonly until: number }>();

  constructor(deps: PresenceDeps) {
    this.#deps = deps;
  }

  async showTyping(route: ReplyRoute, signal: AbortSignal): Promise<void> {
    await this.#attempt(route, async (chatId) => {
      const topic = await this.#typingTopic(route, signal);
      await this.#deps.api().sendChatAction({ chat_id: chatId, ...topic, action: 'typing' }, signal);
    });
  }

  /** Shows a preview of the answer with a Stop button. Private chats only; elsewhere nothing happens. */
  async draft(route: ReplyRoute, draftId: number, text: FormattedText, signal: AbortSignal): Promise<void> {
    if (!isPrivateChat(route) || draftId === 0) return;
    await this.#attempt(route, async (chatId) => {
      const shown = { text: text.text, entities: entitiesOf(text) };
      const target = { chat_id: chatId, ...topicOf(route), draft_id: draftId };
      await this.#deps.api().sendMessageDraft({ ...target, ...shown, can_stop: true }, signal);
    });
  }

  /** Unlike a send, typing must name the General topic. A group's topics can be switched on and off at any time. */
  async #typingTopic(route: ReplyRoute, signal: AbortSignal): Promise<Topic> {
    if (route.thread !== undefined) return { message_thread_id: numericId(route.thread) ?? generalTopic };
    if (!route.conversation.startsWith('-100')) return {};
    const known = this.#forums.get(route.conversation);
    const isKnown = known !== undefined && this.#deps.clock.now() < known.until;
    const isForum = isKnown ? known.isForum : await this.#askForum(route, signal);
    return isForum ? { message_thread_id: generalTopic } : {};
  }

  async #askForum(route: ReplyRoute, signal: AbortSignal): Promise<boolean> {
    const chat = await this.#deps.api().getChat({ chat_id: Number(route.conversation) }, signal);
    const isForum = 'is_forum' in chat && chat.is_forum === true;
    const until = this.#deps.clock.now() + believedForMs;
    keepRecent(this.#forums, maxForums, [route.conversation, { isForum, until }]);
    return isForum;
  }

  async #attempt(route: ReplyRoute, act: (chatId: number) => Promise<void>): Promise<void> {
    const chatId = numericId(route.conversation);
    const until = this.#quietUntil.get(route.conversation) ?? 0;
    if (chatId === undefined || this.#deps.clock.now() < until) return;
    this.#quietUntil.delete(route.conversation);
    try {
      await act(chatId);
    } catch (error) {
      // A missing indicator is no loss; only the pause that Telegram asked for matters.
      const refusal = readRefusal(error);
      this.#deps.log.debug({ reason: refusal?.description ?? 'no answer' }, 'telegram.presence-failed');
      if (refusal?.askedWaitMs !== undefined)
        this.#quietUntil.set(route.conversation, this.#deps.clock.now() + retryAfterMs(refusal.askedWaitMs));
    }
  }
}
