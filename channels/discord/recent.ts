import { keepRecent } from '#channel-kit/keep-recent.ts';
import type { Sender } from '#contracts/envelope.ts';
import { type Bot, isSnowflake } from './ids.ts';
import { messageSchema, type User } from './payload-schema.ts';
import { senderOf } from './people.ts';

/** How many authors are remembered: about a megabyte at most. */
const remembered = 5000;

/** Created once, because the first parse of a schema compiles it, which takes longer than the parse itself. */
const authoredSchema = messageSchema.pick({ id: true, author: true, webhook_id: true });

/**
 * The authors of recent messages. Discord doesn't repeat them when a message is deleted or reacted to; the author of
 * a forgotten message counts as unknown.
 */
export class RecentAuthors {
  readonly #bot: Bot;
  readonly #authors = new Map<string, Sender>();
  readonly #people = new Map<string, User>();

  constructor(bot: Bot) {
    this.#bot = bot;
  }

  /** Remembers the author of a message, whether it was live or read from history. */
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
