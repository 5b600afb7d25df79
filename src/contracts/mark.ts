/**
 * A mark is one quiet reaction on a person's message that shows what became of it while it isn't answered yet:
 *
 * | the message                                             | bears           |
 * |---------------------------------------------------------|-----------------|
 * | has waited for `afterMs`, or its run waits for a budget | `emoji`         |
 * | was collected with later ones into one run              | `merged`        |
 * | was read by a run that was already working              | `read`          |
 * | is the one that a run is answering                      | `ackReaction`   |
 * | is taken otherwise, or has ended, however it ended      | nothing         |
 *
 * A mark is a function of its message's row, so it changes in the transaction that changes the row, and a crash between
 * that commit and the network's call is made up for by the next sweep. Rules for failures:
 *
 * - A message bears one mark at most. Where a network shows several reactions of a bot, the old one goes first.
 * - A mark that is no longer right when its turn comes isn't sent.
 * - Setting a mark is attempted once. Taking one off is repeated a few times if the network asks to wait or doesn't
 *   answer, since a mark that stays says something wrong.
 * - A refusal (the emoji, the right, the message is gone) never matters: nothing is said, recorded or repeated.
 * - An answer never waits behind a mark, except for the one call that is already under way.
 * - What the agent itself reacts with, and the ⚠ of a failed run, replace a mark and are never taken off with it.
 */

/** How the sender of a waiting message is told. */
export type WaitingNoticeKind = 'reaction' | 'line' | 'off';

/** Marks for messages that a run has taken. An empty emoji sets none. */
export type MarkSettings = {
  /** `line`: direct chats get no marks. */
  readonly kind: WaitingNoticeKind;
  /** Overrides `kind` for single channels. */
  readonly channels: Readonly<Record<string, WaitingNoticeKind>>;
  readonly merged: string;
  readonly read: string;
};

/** Returns how waiting senders of the channel are told. */
export function noticeKindOn({ kind, channels }: Pick<MarkSettings, 'kind' | 'channels'>, channel: string) {
  return (Object.hasOwn(channels, channel) ? channels[channel] : undefined) ?? kind;
}
