import { keepRecent } from '#channel-kit/keep-recent.ts';
import type { Sender } from '#contracts/envelope.ts';
import { type Bot, isSnowflake } from './ids.ts';
import { messageSchema, type User } from './payload-schema.ts';
import { senderOf } from './people.ts';

/** About a megabyte at most. */
const remembered = 5000;

/** Made once: the first parse of a schema compiles it, which takes longer than the parse. */
const authoredSchema = messageSchema.pick({ id: true, author: true, webhook_id: true });

/**
 * Who wrote which message lately. Discord does not say it again when a message is deleted or reacted to;
 * what is forgotten counts as written by somebody unknown.
 */
export class RecentAuthors {
  readonly #bot: Bot;
  readonly #authors = new Map<string, Sender>();
  readonly #people = new Map<string, User>();

  constructor(bot: Bot) {
    this.#bot = bot;
  }

  /** Takes note of a message, however it was come by. */
  note(data: unknown): void {
    const message = authoredSchema.safeParse(data);
    if (!message.success) return;
    const { id, author, webhook_id: webhook } = message.data;
    const sender = senderOf({ user: author, isWebhook: webhook !== undefined }, this.#bot);
    keepRecent(this.#authors, remembered, [id, sender]);
    keepRecent(this.#people, remembered, [author.id, author]);
  }

  authorOf(messageId: string): Sender | undefined {
    return isSnowflake(messageId) ? this.#authors.get(messageId) : undefined;
  }

  person(userId: string): User | undefined {
    return this.#people.get(userId);
  }
}
