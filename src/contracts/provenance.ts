/**
 * The origin of an event's words. Only words that the sender wrote and sent themselves can be a command; all
 * others are data, also when passed on. Anything a channel can't tell for certain is `unknown`, never `typed`.
 */
export type Provenance =
  /** Written and sent by the sender: a message, the caption of their own file, a slash command, an edit of these. */
  | 'typed'
  /** Somebody's message, passed on: a forward, a snapshot, a caption that came along. */
  | 'forwarded'
  /** The message quotes the text. */
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
