/**
 * How the words of an event came to stand under its sender's name. Only words that the sender wrote and
 * sent themselves can be a command; all others are data, whoever passed them on. What a channel cannot
 * tell for certain is `unknown`, never `typed`.
 */
export type Provenance =
  /** Written and sent by the sender: a message, the caption of their own file, a slash command, an edit of these. */
  | 'typed'
  /** Somebody's message, passed on: a forward, a snapshot, a caption that came along. */
  | 'forwarded'
  /** The text stands in a quotation within the message. */
  | 'quoted'
  /** Chosen from what an inline bot offered. */
  | 'inline-bot'
  /** Spoken as a channel, or copied from one. */
  | 'channel-post'
  /** A story, or words that belong to one. */
  | 'story'
  /** Sent in the sender's name by a program or at a set time. */
  | 'automated'
  | 'unknown';

/** Unknown is not typed. */
export function isTyped({ provenance }: { readonly provenance: Provenance }): boolean {
  return provenance === 'typed';
}
