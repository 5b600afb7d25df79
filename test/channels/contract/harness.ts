import type { Capabilities } from '#contracts/capabilities.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { ReplyRoute } from '#contracts/route.ts';

/**
 * The hands of a local platform: what its people do, and what can go wrong there. A channel gives those
 * its platform can play; a check that needs another is skipped.
 */
export type ChannelHarness = {
  readonly capabilities: Capabilities;
  /** The id of the bot account on the platform. */
  readonly account: string;
  /** The conversation in which `personSays` writes. */
  readonly route: ReplyRoute;
  /** A new adapter for the account: the first one, or the one of a restarted process. */
  newAdapter(): ChannelAdapter;
  /** Resolves when the platform has the message, which may be before the adapter has heard of it. */
  personSays(text: string): Promise<void>;
  /** What the bot wrote and stands in the conversation now, oldest first. */
  standing(): Promise<readonly StandingText[]>;
  close(): Promise<void>;

  /** A person writes in a thread or topic of a group; returns the route an answer must take. */
  personSaysInThread?(text: string): Promise<ReplyRoute>;
  /** The person of `personSays` passes somebody's message on, in any way that the network marks. */
  personForwards?(text: string): Promise<void>;
  /** The person changes the message of the latest `personSays`. */
  personEdits?(text: string): Promise<void>;
  /** The person deletes the message of the latest `personSays`. */
  personDeletes?(): Promise<void>;
  /** A person puts a reaction on the message of the latest `personSays`, or takes it back. */
  personReacts?(emoji: string, change: 'put' | 'taken-back'): Promise<void>;
  /** The bot's reactions on the message of the latest `personSays`; where `capabilities.canReact`. */
  botReactions?(): readonly string[];
  /** The platform shows the bot a message of its own. */
  botEchoes?(text: string): Promise<void>;
  /** The platform delivers its latest event once more. */
  redeliver?(): Promise<void>;
  /** How many events the platform would still deliver after a crash. */
  unacknowledged?(): number;
  /** The platform delivers something that cannot be read. */
  sendsMalformed?(): Promise<void>;
  /** An adapter with credentials the platform refuses. */
  strangerAdapter?(): ChannelAdapter;
  /** The platform says that events are gone for good. */
  losesEvents?(): Promise<void>;
  /** Receiving is interrupted; the returned function ends that. */
  receivingAway?(): Promise<() => Promise<void>>;
  /** For networks whose missed messages are read from the history of a conversation. */
  readonly history?: HistoryControls;
  /** For networks that call us. */
  readonly webhook?: WebhookControls;
  readonly faults?: SendFaults;
};

export type StandingText = FormattedText & {
  readonly messageId: string;
  /** The message that it is shown to answer; where `capabilities.canQuote`. */
  readonly quotes?: string | undefined;
  /** The file that it carries, its bytes as text; where `capabilities.media`. */
  readonly file?: { readonly name: string; readonly text: string } | undefined;
};

/** The file of a message as the checks compare it. */
export async function shownFile(
  name: string,
  bytes: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<NonNullable<StandingText['file']>> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return { name, text: Buffer.concat(pieces).toString() };
}

export type HistoryControls = {
  /** Lets every answer with history wait until it is released; `asked` resolves with the first question. */
  hold(): { readonly asked: Promise<void>; release(): void };
  /** The platform refuses the history of the conversation from now on. */
  refuse(): void;
  /**
   * Interrupts the live connection, lets `meanwhile` happen unheard, and lets the adapter come back by
   * itself.
   */
  interrupt(meanwhile: () => Promise<void>): Promise<void>;
};

export type WebhookControls = {
  /** Calls the webhook as the platform does with a person's message; resolves with the HTTP status. */
  deliver(text: string, secret?: 'wrong' | 'missing'): Promise<number>;
};

/** Each makes the next send fail in its way. */
export type SendFaults = {
  rateLimited?(afterMs: number): void;
  unreachable?(): void;
  unreadableMarkup?(): void;
  /** The platform takes the message and the connection ends before its answer. */
  answerLost?(): void;
  /** The platform takes the message and never answers; resolves when it has taken it. */
  answerHangs?(): Promise<void>;
  /** Nothing listens; the returned function ends it. */
  away?(): Promise<() => Promise<void>>;
};
