import type { LaneRunFacts } from './trace.ts';

/** Something other than a message that an id stands for, from the store. Holds no message text and no secret. */
export type RecordTrace =
  | { readonly kind: 'session'; readonly session: SessionFacts }
  | { readonly kind: 'lane'; readonly lane: LaneFacts }
  | { readonly kind: 'conversation'; readonly conversation: ConversationFacts }
  | { readonly kind: 'account'; readonly account: AccountFacts }
  | { readonly kind: 'process'; readonly process: ProcessFacts }
  | { readonly kind: 'person'; readonly person: PersonFacts }
  | { readonly kind: 'sign-in'; readonly signIn: SignInFacts }
  | { readonly kind: 'alert'; readonly alert: AlertFacts };

/** Names a record; `id` as it was asked for. */
export type RecordSubject = { readonly kind: RecordTrace['kind']; readonly id: string };

/** A session, as `why` shows it. Times are ms since the epoch. */
export type SessionFacts = {
  readonly id: string;
  /** The session key, which is its lane's. */
  readonly laneKey: string;
  readonly agentId: string;
  /** The session whose sub-agent it is of. */
  readonly parentSessionId: string | undefined;
  readonly messageCount: number;
  /** Micro-dollars; with its title and its sub-agents. */
  readonly cost: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt: number | undefined;
  /** The session that took its place. */
  readonly nextSessionId: string | undefined;
  /** The run that wrote in it last. */
  readonly lastRunId: string | undefined;
  /** Present while it is its lane's session. */
  readonly lane: LaneFacts | undefined;
};

/** A lane, as `why` shows it. */
export type LaneFacts = {
  readonly key: string;
  /** Where its messages enter instead, since accounts were linked. */
  readonly leadsTo: string | undefined;
  readonly agentId: string;
  readonly mode: string;
  readonly sessionId: string;
  readonly run: LaneRunFacts | undefined;
  /** Ids of the messages and commands that nobody has taken, next first; some at most. */
  readonly waiting: readonly string[];
  readonly waitingCount: number;
  readonly lastActivityAt: number;
};

/** A conversation on its platform, as `why` shows it. */
export type ConversationFacts = {
  readonly key: string;
  /** The id it lives on under. */
  readonly movedTo: string | undefined;
  /** The owner who has let this group in. */
  readonly admittedBy: string | undefined;
  readonly unreachableAt: number | undefined;
  /** Keys of the parts that are still to be delivered, and of those that may or may not have arrived; some at most. */
  readonly openParts: readonly string[];
  readonly unknownParts: readonly string[];
};

/** A bot account, as `why` shows it. */
export type AccountFacts = {
  readonly key: string;
  /** The process that receives for it, while its lease lasts. */
  readonly holder: string | undefined;
  readonly leaseUntil: number;
};

/** A process that has not been found dead, as `why` shows it. */
export type ProcessFacts = {
  readonly id: string;
  readonly role: string;
  readonly startedAt: number;
  /** The bot accounts that it receives for. */
  readonly accounts: readonly string[];
};

/** A person's access and links, as far as the store has them: people may be named by the configuration, too. */
export type PersonFacts = {
  /** `<channel>:<peer>`. */
  readonly ref: string;
  /** Their chosen name: proves nothing. */
  readonly name: string;
  readonly approvals: readonly {
    readonly account: string;
    readonly role: string;
    readonly approvedAt: number;
    readonly approvedBy: string;
  }[];
  /** Requests to be let in, each with the id of its question; `isDeclined`: no other one is taken before its time is over. */
  readonly requests: readonly {
    readonly account: string;
    readonly approvalId: string;
    readonly isDeclined: boolean;
    readonly createdAt: number;
    readonly expiresAt: number;
  }[];
  /** Their direct conversation, where it has their id and they have written in it. */
  readonly conversation: string | undefined;
  /** Since when it is linked in chat, and with which other accounts. */
  readonly link: { readonly linkedAt: number; readonly others: readonly string[] } | undefined;
};

/** A signed-in browser, as `why` shows it. */
export type SignInFacts = {
  readonly id: string;
  readonly browser: string;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  readonly expiresAt: number;
};

/** An alert for the owner, as `why` shows it. */
export type AlertFacts = {
  readonly id: string;
  readonly kind: string;
  readonly subject: string;
  /** How often it happened. */
  readonly count: number;
  readonly raisedAt: number;
  readonly lastAt: number;
  readonly toldAt: number | undefined;
  /** The part that told the owner. */
  readonly partKey: string | undefined;
  readonly dismissedAt: number | undefined;
  readonly endedAt: number | undefined;
};
