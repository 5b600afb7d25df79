import type { InboundMessage } from '#contracts/envelope.ts';
import { isTyped } from '#contracts/provenance.ts';

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
 * How much of a message patterns look at, in UTF-16 code units: a full message of any network. A longer
 * text (from the page, say) is asked about by its beginning.
 */
const searchedLength = 4096;

/** Whether a group message calls the agent: reply to the bot, mention or pattern in the sender's own words, or a gate that is off. */
export function passesMentionGate(
  message: Pick<InboundMessage, 'text' | 'mentionsBot' | 'repliesToBot' | 'provenance'>,
  { requireMention, patterns, activation }: MentionGate,
): boolean {
  const needsMention = activation === undefined ? requireMention : activation === 'mention';
  // To whom a message replies is the sender's choice; whom its words name is not, when they are another's.
  if (!needsMention || message.repliesToBot) return true;
  if (!isTyped(message)) return false;
  if (message.mentionsBot) return true;
  const text = message.text.slice(0, searchedLength);
  return patterns.some((pattern) => pattern.find(text) !== undefined);
}
