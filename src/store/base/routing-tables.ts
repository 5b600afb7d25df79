// Tables that decide, together with the configuration, which lane a message enters.

/** The agent that somebody has chosen in chat for a conversation or one of its threads. */
export type BindingsTable = {
  conversationKey: string;
  /** Empty for the conversation itself, with those of its threads that have no row. */
  thread: string;
  agentId: string;
  /** `<channel>:<peer>`. */
  setBy: string;
  setAt: number;
};

/** Accounts that a person has linked in chat. Links of the configuration have no row. */
export type LinksTable = {
  /** `<channel>:<peer>`. */
  peer: string;
  identity: string;
  /** JSON of the route to its direct conversation, where it is notified about the link. */
  route: string;
  linkedAt: number;
};

/** Session keys that lead to a lane with another key; what began before the link continues under its own key. */
export type LaneAliasesTable = {
  key: string;
  laneKey: string;
  identity: string;
  /** The account whose own lane it is. */
  peer: string;
};

/** Link codes, at most one per requesting account. The code itself isn't stored. */
export type LinkCodesTable = {
  peer: string;
  codeHash: string;
  /** JSON of the requesting account and the conversation it asked in. */
  asked: string;
  answerKey: string;
  /** Who was shown which account the code links and may confirm (`<channel>:<peer>`), and in which conversation. */
  offeredTo: string | null;
  offeredIn: string | null;
  /** The part that asks that account to confirm. */
  offerKey: string | null;
  expiresAt: number;
};

/** Codes tried within a window; the row of the peer `*` counts the attempts of all. */
export type LinkGuessesTable = { peer: string; since: number; count: number };
