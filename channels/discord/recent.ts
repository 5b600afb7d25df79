import { keepRecent } from '#channel-kit/keep-recent.ts';
import type { Sender } from '#contracts/envelope.ts';
import { pollSchema } from './body-schema.ts';
import { mediaText } from './describe-body.ts';
import { type Bot, isSnowflake } from './ids.ts';
import { authoredSchema, type User } from './payload-schema.ts';
import { senderOf } from './permissions.ts';
import { fieldsOf } from './raw-fields.ts';

/** How many polls are remembered. */
const rememberedPolls = 200;
/** How many authors are remembered: about a megabyte at most. */
const remembered = 5000;

/**
 * The authors of recent messages. Discord doesn't repeat them when a message is deleted or reacted to; the author of
 * a forgotten message counts as unknown.
 */
export class RecentAuthors {
  readonly #bot: Bot;
  readonly #authors = new Map<string, Sender>();
  readonly #people = new Map<string, User>();
  /** The words of each answer, by its number. */
  readonly #polls = new Map<string, ReadonlyMap<number, string>>();

  constructor(bot: Bot) {
    this.#bot = bot;
  }

  /** Remembers the author of a message, whether it was live or read from history. */
  note(data: unknown): void {
    const message = authoredSchema.safeParse(data);
    if (!message.success) return;
    const { id, author, webhook_id: webhook } = message.data;
    const sender = senderOf({ user: author, isWebhook: webhook }, this.#bot);
    keepRecent(this.#authors, remembered, [id, sender]);
    keepRecent(this.#people, remembered, [author.id, author]);
    const poll = pollSchema.safeParse(fieldsOf(data).poll);
    if (!poll.success) return;
    const answers = poll.data.answers.map(({ answer_id: number, poll_media: words }): [number, string] => [
      number ?? 0,
      mediaText(words),
    ]);
    keepRecent(this.#polls, rememberedPolls, [id, new Map(answers)]);
  }

  authorOf(messageId: string): Sender | undefined {
    return isSnowflake(messageId) ? this.#authors.get(messageId) : undefined;
  }

  /** Returns the words of a poll's answer. A vote only has its number. */
  answerOf(messageId: string, answer: number): string | undefined {
    return this.#polls.get(messageId)?.get(answer) || undefined;
  }

  person(userId: string): User | undefined {
    return this.#people.get(userId);
  }
}
