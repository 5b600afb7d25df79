/** Who asks for a change to waiting items. */
export type Actor = {
  /** `<channel>:<peer>` or `console`, as recorded. */
  readonly ref: string;
  /** All of their accounts, `<channel>:<peer>`, whose messages count as their own. */
  readonly people: readonly string[];
  /** True for owners and, in groups, administrators, who may change anybody's messages. */
  readonly mayChangeAny: boolean;
  /** True for administrators who aren't owners, since other people's messages run with their senders' rights. */
  readonly mayRewordOwnOnly?: true;
  /** True in a direct conversation, where one's own messages may be moved up; in a group that would delay others. */
  readonly mayPromoteOwn: boolean;
  /** Where the change was requested, so that everybody there sees it; absent on the page and the command line. */
  readonly conversationKey?: string;
};
