import type { ModelCallsTable } from '../../base/run-tables.ts';

/**
 * A message's trace from the store: names, states, times and counts. Holds no message text except requested
 * excerpts.
 */
export type MessageTrace = {
  readonly asked: TraceSubject;
  /** Platform events about the messages, oldest first. */
  readonly events: readonly EventFacts[];
  /** The messages that entered a lane: what was asked for, and all that its runs took. In arrival order. */
  readonly items: readonly ItemFacts[];
  readonly runs: readonly RunFacts[];
  /** Sub-agents of the runs' trees, in the order of their spawns; their runs and items are among the others. */
  readonly children: readonly ChildFacts[];
  /** Answers, oldest first. */
  readonly parts: readonly PartFacts[];
  /** Questions that a person with the right to decides: what was asked for, and what a person's first message led to. */
  readonly approvals: readonly ApprovalFacts[];
};

/** Subject that `why` was asked about. */
export type TraceSubject =
  | { readonly kind: 'message'; readonly conversationKey: string; readonly messageId: string }
  | { readonly kind: 'event'; readonly account: string; readonly eventKey: string }
  | { readonly kind: 'call'; readonly messageId: string; readonly callId: string }
  | { readonly kind: 'item' | 'part' | 'run' | 'transcript' | 'child' | 'approval'; readonly id: string };

/** A ledger row: one platform event, and intake's decision on it. Times are ms since the epoch. */
export type EventFacts = {
  readonly account: string;
  readonly eventKey: string;
  readonly kind: string;
  /** `accepted`, `held`, `refused`, `ignored`, `command` or `noted`. */
  readonly outcome: string;
  /** Why it was refused or ignored, which command it was, or what it changed. */
  readonly reason: string | undefined;
  readonly conversationKey: string;
  readonly messageId: string | undefined;
  readonly at: number;
};

/** An item, as `why` shows it. */
export type ItemFacts = {
  readonly id: string;
  readonly laneKey: string;
  readonly seq: number;
  readonly rank: number;
  readonly kind: string;
  readonly conversationKey: string;
  readonly messageId: string | undefined;
  /** `<channel>:<peer>`. */
  readonly sender: string;
  readonly authority: string;
  readonly state: 'held' | 'waiting' | 'taken' | 'ended';
  /** Undefined while it is open. */
  readonly outcome: string | undefined;
  /** Parts of the answer are still to be delivered: what becomes of them may amend the outcome. */
  readonly isProvisional: boolean;
  readonly outcomeReason: string | undefined;
  readonly arrivedAt: number;
  readonly dueAt: number;
  /** When a notice for its sender was stored, that it waits; dropped if it waits no more before it is sent. */
  readonly notifiedAt: number | undefined;
  /** How many messages of the lane go before it; only of one that waits. */
  readonly ahead: number | undefined;
  /** Its time to be taken has come, by the database's clock. */
  readonly isDue: boolean;
  /** Its files are still being fetched. */
  readonly isFetching: boolean;
  /** The unfinished run of its lane, which ends before it or takes it in; only of one that waits. */
  readonly laneRun: LaneRunFacts | undefined;
  readonly runId: string | undefined;
  /** Whether it was there when its run began, or joined it at a later boundary. */
  readonly joined: 'began' | 'steered' | undefined;
  readonly takenAt: number | undefined;
  readonly transcriptId: string | undefined;
  /** The assistant message that answered it. */
  readonly answer: string | undefined;
  /** Files that came with it, once they are fetched or given up. */
  readonly files: readonly FileFacts[];
  /** Who promoted, edited or cancelled it while it waited. */
  readonly changes: readonly { readonly kind: string; readonly by: string; readonly at: number }[];
  readonly excerpt?: string;
};

/** A lane's unfinished run: at work or due, or parked since then. */
export type LaneRunFacts = {
  readonly id: string;
  readonly parkedAt: number | undefined;
  readonly parkReason: string | undefined;
};

/** A file of a message, as `why` shows it: what it is, or why it isn't there. */
export type FileFacts =
  | { readonly kind: 'stored'; readonly mimeType: string; readonly sizeBytes: number }
  | { readonly kind: 'missing'; readonly reason: string };

/** A run, as `why` shows it. */
export type RunFacts = {
  readonly id: string;
  readonly laneKey: string;
  readonly sessionId: string;
  readonly authority: string;
  readonly state: 'active' | 'parked' | 'finished';
  /** How often a process began or resumed it after a crash; planned hand-overs do not count. */
  readonly attempts: number;
  /** It was handed over on purpose, and nobody has gone on with it yet. */
  readonly isHandedOver: boolean;
  readonly cancelReason: string | undefined;
  readonly endReason: string | undefined;
  readonly detail: string | undefined;
  readonly parkedAt: number | undefined;
  readonly parkReason: string | undefined;
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  readonly toolCalls: readonly ToolCallFacts[];
  readonly modelCalls: readonly ModelCallFacts[];
  /** Summaries by which it has replaced the older part of its session's history. */
  readonly summaries: readonly { readonly id: string; readonly at: number }[];
  /** Its messages in the transcript, in their order. */
  readonly transcript: readonly { readonly id: string; readonly role: string; readonly at: number }[];
};

/** A sub-agent, as `why` shows it. */
export type ChildFacts = {
  readonly id: string;
  readonly depth: number;
  readonly agentId: string;
  readonly laneKey: string;
  readonly parentRunId: string;
  readonly parentCallId: string;
  readonly mode: 'wait' | 'announce';
  readonly state: 'queued' | 'running' | 'done';
  readonly status: string | undefined;
  /** Who has the result: `tool`, `lane`, or `none`. */
  readonly told: string | undefined;
  /** Prompt and completion tokens. */
  readonly tokens: number;
  /** Micro-dollars. */
  readonly cost: number;
  readonly createdAt: number;
  readonly endedAt: number | undefined;
  readonly excerpt?: string;
};

/** A tool call as its row says; times in ms. */
export type ToolCallFacts = {
  readonly callId: string;
  readonly messageId: string;
  readonly name: string;
  readonly state: 'pending' | 'started' | 'waiting' | 'done';
  readonly isError: boolean;
  /** It had started when it was interrupted: whether it had its effect is not known. */
  readonly isUnknown: boolean;
  /** The answer that it waited for has not come in time. */
  readonly isExpired: boolean;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
};

/** A model call, as `why` shows it. */
export type ModelCallFacts = Omit<ModelCallsTable, ModelCallKeys | 'withoutTools'> & {
  /** The model takes no tools, and was asked without. */
  readonly isWithoutTools: boolean;
};

type ModelCallKeys =
  | 'id'
  | 'runId'
  | 'sessionId'
  | 'provider'
  | 'reserved'
  | 'budgetKeys'
  | 'rate'
  | 'openedAt';

/** A question of Parley's that a person decides, as `why` shows it. */
export type ApprovalFacts = {
  readonly id: string;
  /** Whether to let a person in, or to answer in a group. */
  readonly kind: 'pairing' | 'group';
  /** The group's conversation; of a person, while the question is open, `<channel>:<peer>`. */
  readonly about: string | undefined;
  /** The bot account that the person wrote to, while the question is open. */
  readonly account: string | undefined;
  readonly state: 'open' | 'approved' | 'denied' | 'expired';
  /** Who decided, as others read it. */
  readonly decidedBy: string | undefined;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Its time is over, whether a sweep has closed it or not. */
  readonly isOver: boolean;
};

/** A part, as `why` shows it. */
export type PartFacts = {
  readonly key: string;
  readonly conversationKey: string;
  readonly purpose: string;
  readonly state: 'pending' | 'sending' | 'sent' | 'unknown' | 'failed';
  readonly attempts: number;
  /** Why it failed, is unknown, or has to be sent again. */
  readonly problem: string | undefined;
  /** The platform's id. */
  readonly messageIds: readonly string[];
  readonly runId: string | undefined;
  /** The assistant message that it is a part of. */
  readonly answer: string | undefined;
  readonly createdAt: number;
  readonly dueAt: number;
  readonly endedAt: number | undefined;
  /** Since when its platform asks to wait before it is sent, and until when it asked last. */
  readonly askedToWait?: { readonly since: number; readonly until: number };
  readonly excerpt?: string;
};
