/** Who asks for a change of what waits. */
export type Actor = {
  /** `<channel>:<peer>`, or `console`: as it goes on record. */
  readonly ref: string;
  /** Whose messages are their own: every account of theirs, `<channel>:<peer>`. */
  readonly people: readonly string[];
  /** Owners and, in groups, administrators: they change anybody's messages. */
  readonly mayChangeAny: boolean;
  /** Administrators who are no owners: the words of others have their writer's rights, so they may not be theirs. */
  readonly mayRewordOwnOnly?: true;
  /** In a direct conversation one's own may be put in front; in a group that pushes others back. */
  readonly mayPromoteOwn: boolean;
  /** Where the change was asked for, so that everybody there sees it; absent on page and command line. */
  readonly conversationKey?: string;
};
