import type { Generated } from 'kysely';
import type { ItemSource, Reach } from '#contracts/inbox-item.ts';
import type { AlertKind } from '#contracts/owner-alert.ts';
import type {
  BindingsTable,
  LaneAliasesTable,
  LinkCodesTable,
  LinkGuessesTable,
  LinksTable,
} from './routing-tables.ts';
import type {
  BudgetsTable,
  ChildrenTable,
  LaneClassesTable,
  ModelCallsTable,
  RunsTable,
  SessionsTable,
  SessionUsageTable,
  SkillSnapshotsTable,
  SubtasksTable,
  TaskMessagesTable,
  TasksTable,
  ToolCallsTable,
  TranscriptTable,
  TreesTable,
} from './run-tables.ts';

/** The schema of both databases. Times are ms since the epoch by the database's clock, booleans 0 or 1, JSON text. */
export type Tables = {
  boots: BootsTable;
  accounts: AccountsTable;
  conversations: ConversationsTable;
  ledger: LedgerTable;
  lanes: LanesTable;
  inbox: InboxTable;
  groupContext: GroupContextTable;
  sessions: SessionsTable;
  transcript: TranscriptTable;
  runs: RunsTable;
  skillSnapshots: SkillSnapshotsTable;
  toolCalls: ToolCallsTable;
  modelCalls: ModelCallsTable;
  sessionUsage: SessionUsageTable;
  budgets: BudgetsTable;
  outbox: OutboxTable;
  receipts: ReceiptsTable;
  ownerNotices: OwnerNoticesTable;
  restores: RestoresTable;
  approvals: ApprovalsTable;
  callApprovals: CallApprovalsTable;
  grants: GrantsTable;
  pluginData: PluginDataTable;
  people: PeopleTable;
  pairings: PairingsTable;
  pairingTries: PairingTriesTable;
  leftFiles: LeftFilesTable;
  anchors: AnchorsTable;
  links: LinksTable;
  laneAliases: LaneAliasesTable;
  linkCodes: LinkCodesTable;
  linkGuesses: LinkGuessesTable;
  itemChanges: ItemChangesTable;
  marks: MarksTable;
  signIns: SignInsTable;
  tokens: TokensTable;
  apiCalls: ApiCallsTable;
  operationCalls: OperationCallsTable;
  lockouts: LockoutsTable;
  children: ChildrenTable;
  trees: TreesTable;
  laneClasses: LaneClassesTable;
  tasks: TasksTable;
  subtasks: SubtasksTable;
  taskMessages: TaskMessagesTable;
  bindings: BindingsTable;
};

/** A value that a plugin keeps; `bytes`: the length of `value`. */
export type PluginDataTable = { plugin: string; key: string; value: string; bytes: number; version: number };

/** A process that has opened the store. */
export type BootsTable = { id: string; folder: string; startedAt: number; role: string };

/** A bot account: which process receives for it, and up to where the platform's events are acknowledged. */
export type AccountsTable = {
  /** `<channel>/<account>`. */
  key: string;
  epoch: number;
  holder: string | null;
  leaseUntil: number;
  cursor: string | null;
  /** Hash of the command list last registered with the network. */
  commandsHash: string | null;
};

export type ConversationsTable = {
  /** `<channel>/<account>/<conversation>`. */
  key: string;
  /** The id that its session key is made from: an earlier one after a migration. */
  canonicalId: string | null;
  /** The id under which it continues. */
  movedTo: string | null;
  activation: string | null;
  /** The owner who has admitted this group, if the configuration doesn't. */
  admittedBy: string | null;
  unreachableAt: number | null;
  /** The id of the latest command's sender; only for direct conversations. */
  commandedBy: string | null;
  commandedAt: number | null;
  /** Next place in the conversation's delivery order. */
  nextPart: number;
  deliveryEpoch: number;
  deliveryHolder: string | null;
  /** Identifies the holder's claim: `DeliveryPolicy`. */
  deliveryClaim: string | null;
  deliveryUntil: number;
};

/** One row per platform event, whatever its outcome, without the content of readable events. Kept forever. */
export type LedgerTable = {
  account: string;
  eventKey: string;
  kind: string;
  /** `accepted`, `held`, `refused`, `ignored`, `command` or `noted`. */
  outcome: string;
  /** Why it was refused or ignored, which command it was, or what it changed. */
  reason: string | null;
  inboxId: string | null;
  laneKey: string | null;
  conversationKey: string;
  messageId: string | null;
  /** Only for events that couldn't be read. */
  raw: string | null;
  /** Fingerprint of messages and edits; see `fingerprintOf`. */
  fingerprint: string | null;
  at: number;
};

/** A session's serial queue: which process runs it, and how it treats new messages. */
export type LanesTable = {
  key: string;
  class: string;
  agentId: string;
  chatKind: string;
  sessionId: string;
  /** Fences every write of a run; grows with each claim. */
  epoch: number;
  holder: string | null;
  leaseUntil: number;
  /** The unfinished run, if there is one. */
  runId: string | null;
  /** Next sequence number, shared by inbox items and replies, so that both form one timeline. */
  nextSeq: number;
  mode: string;
  debounceMs: number;
  quietMs: number;
  cap: number;
  drop: string;
  /** JSON of exactly the settings made with `/queue`; all others follow the configuration. */
  overrides: string | null;
  /** JSON list of the messages that the cap reduced to one line each, shown before the next run. */
  overflow: string | null;
  lastActivityAt: number;
  /** When an owner last wrote, to within minutes (`noteOwner`); only set in an owner's direct conversation. */
  ownerAt: number | null;
};

/** Inbox items: accepted messages and lane commands, each with its one outcome. Rows stay. */
export type InboxTable = {
  id: string;
  laneKey: string;
  seq: number;
  /** Sorts before `seq`; only changed by promote and interrupt. */
  rank: number;
  kind: 'message' | 'command';
  state: 'held' | 'waiting' | 'taken' | 'ended';
  outcome: string | null;
  outcomeReason: string | null;
  /** Rows of one album, split text or debounce window. */
  bundle: string | null;
  account: string;
  conversationKey: string;
  messageId: string | null;
  senderId: string;
  authority: string;
  /** Null for items that are only on record, as for runs. */
  route: string | null;
  source: Generated<ItemSource>;
  /** Unique, as `reservedRunId` is. */
  sourceKey: string | null;
  reach: Generated<Reach>;
  reservedRunId: string | null;
  content: string;
  /** 1 while it has files still to fetch. */
  isFetching: number;
  dueAt: number;
  runId: string | null;
  transcriptId: string | null;
  /** The assistant message that answered it, whose parts decide its final outcome. */
  answer: string | null;
  /** 1 when it was steered into its run and is requeued if the run ends without having used it. */
  isKept: Generated<number>;
  /** When its sender was notified that it waits; 0 when no notice is due, null until notified. */
  notifiedAt: number | null;
  createdAt: number;
};

/**
 * Messages that bear a quiet reaction or are to bear one (`contracts/mark.ts`), until the last one is taken off. Which
 * of the emojis holds follows from the state of the inbox item.
 */
export type MarksTable = {
  inboxId: string;
  laneKey: string;
  /** Emoji while the item waits. */
  waiting: string | null;
  /** Emoji while a run has taken it. */
  taken: string | null;
  /** The emoji that the outbox was last told to show. */
  told: string | null;
};

/** Unmentioned group messages, shown to the agent once at the next triggering message. */
export type GroupContextTable = {
  laneKey: string;
  seq: number;
  /** Conversation of the message; empty for the gateway's own notes. */
  conversationKey: string;
  messageId: string | null;
  content: string;
  shownInRun: string | null;
};

/** Outbox parts: one platform action each, in the delivery order of its conversation. */
export type OutboxTable = {
  /** Run, ordinal and target, so that a second insert is a no-op. */
  key: string;
  conversationKey: string;
  /** Order within the conversation. */
  place: number;
  laneKey: string | null;
  /** Place in the session's timeline. */
  seq: number | null;
  runId: string | null;
  /** Parts of one answer; a permanent failure of one ends those after it. */
  answer: string | null;
  purpose: 'reply' | 'notice' | 'preview' | 'tool';
  route: string;
  content: string;
  state: 'pending' | 'sending' | 'sent' | 'unknown' | 'failed';
  attempts: number;
  dueAt: number;
  sendingAt: number | null;
  /** When the platform first asked to delay this part, and the latest time it asked for; null if it never did. */
  waitAskedSince: number | null;
  waitAskedUntil: number | null;
  receipts: string | null;
  /** Why it failed, is unknown, or must be sent again. */
  problem: string | null;
  createdAt: number;
  endedAt: number | null;
};

/** Maps a platform message id to the part that made it. */
export type ReceiptsTable = { conversationKey: string; messageId: string; partKey: string };

/**
 * The restores of this database, each recorded with the commit or rename that put it in place. `madeAt` is the time of
 * the backup, ISO 8601; `isActed` is 1 once a start has acted on it.
 */
export type RestoresTable = { id: string; madeAt: string; isActed: number };

/** Alerts for the owner; one open row for each kind and subject. */
export type OwnerNoticesTable = {
  id: string;
  kind: AlertKind;
  /** The channel, lane, account or conversation that it is about. */
  subject: string;
  /** JSON of the values for its text. */
  details: string;
  /** How often it has happened. */
  count: number;
  raisedAt: number;
  lastAt: number;
  /** 1 while the alert, or its end, is still to be reported. */
  isPending: number;
  toldAt: number | null;
  /** The part that notified the owner; null if there was no way to. */
  partKey: string | null;
  dismissedAt: number | null;
  endedAt: number | null;
};

/**
 * Questions that an authorized person decides, each once: by a button, a command, the page or the console. The kind
 * determines what is asked and what a decision does.
 */
export type ApprovalsTable = {
  /** Short enough to type. */
  id: string;
  kind: 'pairing' | 'group';
  /** The matter to decide; one open question each. Pairing: the request's id. Group: its conversation's key. */
  subject: string;
  /** JSON of what the kind needs. */
  details: string;
  state: 'open' | 'approved' | 'denied' | 'expired';
  /** `<channel>:<peer>` with the name at that time, `console` or `page`. */
  decidedBy: string | null;
  createdAt: number;
  expiresAt: number;
};

/** Questions about tool calls, each with its one end. Rows stay. */
export type CallApprovalsTable = {
  /** Short enough to type. */
  id: string;
  runId: string;
  /** With the run, names the call, which has one question. */
  messageId: string;
  callId: string;
  laneKey: string;
  /** The lane of the conversation in which the run began; for a sub-agent's call, not its own. */
  grantLane: string;
  tool: string;
  /** JSON of the arguments that the call runs with. */
  input: string;
  shown: string;
  digest: string;
  /** The least trusted authority that may decide. */
  authority: string;
  runAuthority: string;
  /** JSON list of the people whose messages caused the call, `channel:peer`. */
  askers: string;
  state: 'open' | 'approved' | 'denied' | 'expired' | 'void';
  /** As in `ApprovalsTable`. */
  decidedBy: string | null;
  createdAt: number;
  expiresAt: number;
  endedAt: number | null;
};

/** Calls that a person has allowed for longer, each in one conversation. Rows stay. */
export type GrantsTable = {
  /** That of the question. */
  id: string;
  laneKey: string;
  tool: string;
  digest: string;
  shown: string;
  /** Authority of the run that asked: less trusted runs aren't covered. */
  authority: string;
  grantedBy: string;
  createdAt: number;
  expiresAt: number;
  revokedBy: string | null;
  /** When it was revoked. */
  endedAt: number | null;
};

/** Approved people, per bot account. People named in the configuration have no row. */
export type PeopleTable = {
  account: string;
  /** The immutable platform id. */
  peerId: string;
  /** `<channel>:<peer>`, as an operator names the person. */
  ref: string;
  name: string;
  role: 'owner' | 'user';
  approvedAt: number;
  /** `console`, or the `<channel>:<peer>` of the owner. */
  approvedBy: string;
};

/** Pending requests for access: one row per person and bot account, until it expires. */
export type PairingsTable = {
  account: string;
  peerId: string;
  id: string;
  ref: string;
  name: string;
  /** Null, like `code`, once an owner has denied the request. */
  codeHash: string | null;
  /** Shown to the owner. */
  code: string | null;
  /** JSON of the message that is answered once its sender is admitted (`KeptMessage`). */
  kept: string | null;
  /** JSON of the route by which the person is notified. */
  route: string;
  /** The outbox part that shows the code, blanked as soon as the code is void. */
  noticeKey: string;
  /** Who was shown the person's name in chat and may confirm (`<channel>:<peer>`), and in which conversation. */
  offeredTo: string | null;
  offeredIn: string | null;
  createdAt: number;
  expiresAt: number;
};

/** Files of a message that remain with its network and won't be fetched, until the network is asked to remove them. */
export type LeftFilesTable = {
  id: string;
  /** JSON of where the message came from. */
  route: string;
  /** JSON of the files, as the network names them. */
  files: string;
  at: number;
};

/** The times of the last attempts to approve a code, JSON. */
export type PairingTriesTable = { name: string; recent: string };

/** Up to where a conversation is accepted without a gap, on networks whose history is read by conversation. */
export type AnchorsTable = { account: string; conversation: string; anchor: string };

/** Changes to waiting messages, recorded because they change an order or an outcome. */
export type ItemChangesTable = {
  id: string;
  laneKey: string;
  inboxId: string;
  kind: 'cancel' | 'promote' | 'edit' | 'interrupt';
  /** `<channel>:<peer>`, or `console`. */
  by: string;
  at: number;
};

/** A signed-in browser. Its times are those of the server that signed it in. */
export type SignInsTable = {
  id: string;
  /** Hash of the cookie, keyed with the access token. The cookie itself is not stored. */
  secretHash: string;
  /** Identifies the access token that was used. */
  issuer: string;
  /** The browser's name as printable text. */
  browser: string;
  createdAt: number;
  lastSeenAt: number;
  expiresAt: number;
};

/** Calls of programs that must not happen twice, stored with their effect. */
export type ApiCallsTable = {
  /** The caller's id and idempotency key. */
  key: string;
  /** Id of the token; `owner` for the access token. */
  caller: string;
  /** Hash of what was asked: another question under the same key is refused. */
  digest: string;
  /** Source key of the inbox item that the first call became. */
  sourceKey: string;
  /** How many attempts the client had made, by its own count. */
  attempts: number;
  createdAt: number;
};

/** Results of operations with an idempotency key; see rows/operation-calls.ts. */
export type OperationCallsTable = {
  /** The caller, the key, and which of its writes, or `answer`. */
  key: string;
  /** Hash of the operation and its input. */
  digest: string;
  /** JSON: what the write returned, or the answer, as `value`. */
  result: string;
  createdAt: number;
};

/** Tokens of programs. Rows stay. */
export type TokensTable = {
  id: string;
  /** Unique among those that aren't revoked. */
  name: string;
  /** `TokenScope`s, separated by spaces. */
  scopes: string;
  /** Hash of the secret, which isn't stored. */
  secretHash: string;
  /** As `decidedBy` in `ApprovalsTable`. */
  createdBy: string;
  createdAt: number;
  /** Null if it never expires. */
  expiresAt: number | null;
  /** To within a minute. */
  lastUsedAt: number | null;
  revokedAt: number | null;
};

/** An address that has sent too many wrong secrets. */
type LockoutsTable = { source: string; until: number };
