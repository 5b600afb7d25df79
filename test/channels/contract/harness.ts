import type { Capabilities } from '#contracts/capabilities.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { ReplyRoute } from '#contracts/route.ts';

/**
 * Controls of a local platform: what people do there, and what can go wrong. A channel provides those that its platform
 * can simulate; a check that needs another one is skipped.
 */
export type ChannelHarness = {
  readonly capabilities: Capabilities;
  /** The id of the bot account on the platform. */
  readonly account: string;
  /** The conversation in which `personSays` writes. */
  readonly route: ReplyRoute;
  /** Creates an adapter for the account: the first one, or that of a restarted process. */
  newAdapter(): ChannelAdapter;
  /** Resolves once the platform has the message, which may be before the adapter has seen it. */
  personSays(text: string): Promise<void>;
  /** The bot's messages that are now in the conversation, oldest first. */
  standing(): Promise<readonly StandingText[]>;
  close(): Promise<void>;

  /** A person writes in a thread or topic of a group; resolves with the route that an answer must take. */
  personSaysInThread?(text: string): Promise<ReplyRoute>;
  /** The person of `personSays` forwards somebody's message, in any way that the network marks. */
  personForwards?(text: string): Promise<void>;
  /** The person edits the message of the latest `personSays`. */
  personEdits?(text: string): Promise<void>;
  /** The person deletes the message of the latest `personSays`. */
  personDeletes?(): Promise<void>;
  /** A person adds a reaction to the message of the latest `personSays`, or removes it. */
  personReacts?(emoji: string, change: 'put' | 'taken-back'): Promise<void>;
  /** The bot's reactions on the message of the latest `personSays`; only if `capabilities.canReact`. */
  botReactions?(): readonly string[];
  /** The platform delivers one of the bot's own messages to the bot. */
  botEchoes?(text: string): Promise<void>;
  /** The platform delivers its latest event once more. */
  redeliver?(): Promise<void>;
  /** How many events the platform would still deliver after a crash. */
  unacknowledged?(): number;
  /** The platform delivers an event that can't be read. */
  sendsMalformed?(): Promise<void>;
  /** Creates an adapter with credentials that the platform rejects. */
  strangerAdapter?(): ChannelAdapter;
  /** The platform reports that events are permanently lost. */
  losesEvents?(): Promise<void>;
  /** Interrupts receiving; the returned function restores it. */
  receivingAway?(): Promise<() => Promise<void>>;
  /** For networks whose missed messages are read from the history of a conversation. */
  readonly history?: HistoryControls;
  /** For networks that call us. */
  readonly webhook?: WebhookControls;
  readonly faults?: SendFaults;
};

export type StandingText = FormattedText & {
  readonly messageId: string;
  /** The message that it visibly replies to; only if `capabilities.canQuote`. */
  readonly quotes?: string | undefined;
  /** The file that it carries, its bytes as text; only if `capabilities.media`. */
  readonly file?: { readonly name: string; readonly text: string } | undefined;
};

/** Returns a message's file in the form that the checks compare. */
export async function shownFile(
  name: string,
  bytes: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<NonNullable<StandingText['file']>> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return { name, text: Buffer.concat(pieces).toString() };
}

export type HistoryControls = {
  /** Holds back every answer with history until released; `asked` resolves with the first request. */
  hold(): { readonly asked: Promise<void>; release(): void };
  /** From now on the platform refuses to give out the conversation's history. */
  refuse(): void;
  /**
   * Interrupts the live connection, lets `meanwhile` happen unseen by the adapter, and lets it reconnect on its own.
   */
  interrupt(meanwhile: () => Promise<void>): Promise<void>;
};

export type WebhookControls = {
  /** Calls the webhook as the platform does for a person's message; resolves with the HTTP status. */
  deliver(text: string, secret?: 'wrong' | 'missing'): Promise<number>;
};

/** Faults; each makes the next send fail in its own way. */
export type SendFaults = {
  rateLimited?(afterMs: number): void;
  unreachable?(): void;
  unreadableMarkup?(): void;
  /** The platform accepts the message, and the connection ends before the answer. */
  answerLost?(): void;
  /** The platform accepts the message and never answers; resolves once it has accepted it. */
  answerHangs?(): Promise<void>;
  /** Makes the platform unreachable; the returned function brings it back. */
  away?(): Promise<() => Promise<void>>;
};
