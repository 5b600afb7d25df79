import { type InboundEnvelope, type InboundMessage, isTyped } from '#contracts/envelope.ts';

/** Set for one group by `/activation`; wins over the configuration. */
export type Activation = 'mention' | 'always';

/** A configured pattern, compiled for linear time by the configuration. */
export interface MentionPattern {
  find(text: string): object | undefined;
}

export type MentionGate = {
  /** The group's configuration. */
  readonly requireMention: boolean;
  readonly patterns: readonly MentionPattern[];
  readonly activation?: Activation | undefined;
};

/**
 * How much of a message the patterns search, in UTF-16 code units: a full message of any network. Only the beginning of
 * a longer text is searched, for example one from the page.
 */
const searchedLength = 4096;

/**
 * Says whether a group message calls the agent: by replying to the bot, by a mention or pattern in the sender's own
 * words, or because the gate is off.
 */
export function passesMentionGate(
  message: Pick<InboundMessage, 'text' | 'mentionsBot' | 'repliesToBot' | 'provenance'>,
  { requireMention, patterns, activation }: MentionGate,
): boolean {
  const needsMention = activation === undefined ? requireMention : activation === 'mention';
  // The sender chooses what to reply to, but not whom somebody else's words mention.
  if (!needsMention || message.repliesToBot) return true;
  if (!isTyped(message)) return false;
  if (message.mentionsBot) return true;
  const text = message.text.slice(0, searchedLength);
  return patterns.some((pattern) => pattern.find(text) !== undefined);
}

/** Says whether a person speaks to the bot or has added it to the group. */
export function isCalledBy(event: InboundEnvelope['event']): boolean {
  if (event.kind === 'membership') return event.isMember;
  return event.kind === 'message' && ((event.mentionsBot && isTyped(event)) || event.repliesToBot);
}
