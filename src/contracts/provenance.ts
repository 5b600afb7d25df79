/**
 * The origin of an event's words. Only words that senders wrote and sent themselves can be a command; all
 * others are data, even when forwarded. Anything a channel can't determine for certain is `unknown`, never `typed`.
 */
export type Provenance =
  /** Written and sent by the sender: a message, the caption of their own file, a slash command, an edit of these. */
  | 'typed'
  /** A message passed on: a forward, a snapshot, a caption that came with one. */
  | 'forwarded'
  /** The message quotes the text. */
  | 'quoted'
  /** Chosen from an inline bot's suggestions. */
  | 'inline-bot'
  /** Spoken as a channel, or copied from one. */
  | 'channel-post'
  /** A story, or words that belong to one. */
  | 'story'
  /** Sent in the sender's name by a program or at a set time. */
  | 'automated'
  | 'unknown';

/** Whether the words are typed by the sender; unknown ones are not. */
export function isTyped({ provenance }: { readonly provenance: Provenance }): boolean {
  return provenance === 'typed';
}
