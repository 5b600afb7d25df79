import type { Generated } from 'kysely';
import type { ChildMode, ChildState, ChildStatus, ChildTold } from '#contracts/child.ts';
import type { RunKind } from '#contracts/inbox-item.ts';
import type {
  FailurePolicy,
  SubtaskState,
  TaskMessage,
  TaskMode,
  TaskState,
  TaskTold,
} from '#contracts/task.ts';

export type SessionsTable = {
  id: string;
  key: string;
  /** The session that it is a sub-agent of. */
  parentSessionId: string | null;
  agentId: string;
  title: string | null;
  messageCount: number;
  promptTokens: number;
  completionTokens: number;
  /** The message shown to the model in place of those before `keptFrom`. */
  summaryMessageId: string | null;
  /** Position of the first message that the model sees as it was written; 0 without a summary. */
  keptFrom: Generated<number>;
  /** Approximate tokens of instructions and tools in its last run; 0 before the first. */
  instructionTokens: Generated<number>;
  toolTokens: Generated<number>;
  /** Micro-dollars. */
  cost: number;
  /** Chosen by `/model` and `/think`, or when a sub-agent is spawned; null: its agent's. */
  model: string | null;
  reasoning: string | null;
  /** Chosen by `/verbose` and `/reasoning`; null: the configuration's for its channel. */
  verbose: string | null;
  reasoningShown: string | null;
  /** JSON, for children only: `ChildRole`; the sessions above it, root first; `ForkPoint`. */
  role: string | null;
  ancestors: string | null;
  forkedFrom: string | null;
  createdAt: number;
  updatedAt: number;
  endedAt: number | null;
};

/** Messages of a session, in the order of their positions. */
export type TranscriptTable = {
  id: string;
  sessionId: string;
  position: number;
  role: string;
  parts: string;
  /** Sentence for the model along with a person's message: when it was taken, and from whom. */
  note: string | null;
  model: string | null;
  /** Content omitted from requests (`Unsendable`), since one was rejected for it. */
  unsendable: string | null;
  runId: string | null;
  /** 0 while an assistant message streams: it doesn't count until it has its finish part. */
  isFinished: number;
  /** 1 when it summarizes the messages before it; only the session's latest summary is ever shown. */
  isSummary: Generated<number>;
  createdAt: number;
  updatedAt: number;
};

/** Runs, unfinished and finished. Rows stay. */
export type RunsTable = {
  id: string;
  laneKey: string;
  sessionId: string;
  /** `turn` answers messages; `compact` summarizes the session on request; `title` names another session. */
  kind: Generated<RunKind>;
  state: 'active' | 'parked' | 'finished';
  epoch: number;
  /** How often a process has begun it, or resumed it after a crash; planned hand-overs don't count. */
  attempts: number;
  /** 1 when the last holder handed it over on purpose, so that the attempt doesn't count as failed. */
  isHandedOver: number;
  route: string | null;
  authority: string;
  /** The name of its model, fixed when it began. */
  model: string;
  /** Set when its session has chosen one. */
  reasoning: string | null;
  cancelReason: string | null;
  /** Next ordinal of its reply parts. */
  nextOrdinal: number;
  endReason: string | null;
  detail: string | null;
  /** Since when it has waited for an outside result, without slot or lease; null while it isn't parked. */
  parkedAt: number | null;
  parkReason: string | null;
  /** JSON of `BudgetWait` while it is parked because a budget has no room. */
  budgetWait: string | null;
  /** Id of its `skillSnapshots` row; null if it has no skills. */
  skills: string | null;
  /** How long it had worked when it was last parked, ms; counts against its time limit. */
  workedMs: number;
  /** Id of the tree whose budget its children count against: its own id, or its child's or its announcement's tree. */
  treeId: string;
  /** Source key of the item of a task that it works on; null for every other run. */
  taskItem: string | null;
  startedAt: number;
  endedAt: number | null;
  /** Which end of its lane this was: 1, 2, 3 … Null until then, and for runs that version 0.2.0 has ended. */
  endNumber: number | null;
};

/** Skills that runs began with, by the digest of what they are. Rows stay, since few ever differ. */
export type SkillSnapshotsTable = {
  id: string;
  /** JSON of `Skill[]`. */
  data: string;
};

/** Tool calls, from the message that makes one to its result. */
export type ToolCallsTable = {
  runId: string;
  /** The assistant message, which is part of the key because servers repeat call ids. */
  messageId: string;
  callId: string;
  ordinal: number;
  name: string;
  input: string;
  state: 'pending' | 'started' | 'waiting' | 'done';
  result: string | null;
  isError: number;
  startedAt: number | null;
  endedAt: number | null;
};

/** The ledger of model calls: one row per attempt, `open` until its one end. */
export type ModelCallsTable = {
  /** Epoch of the claim, and the call's number within it. */
  id: string;
  runId: string;
  sessionId: string;
  state: 'open' | 'settled' | 'unknown' | 'void';
  provider: string;
  model: string;
  purpose: string;
  /** Micro-dollars that the budgets in `budgetKeys` reserve for it, or its upper bound if no budget applies. */
  reserved: number;
  /** JSON of the keys in `budgets`; null if none applies. */
  budgetKeys: string | null;
  /** JSON of `CallRate` until the bound is computed. */
  rate: string | null;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  cost: number;
  latencyMs: number;
  /** 1 when the model takes no tools and was called without those of the request. */
  withoutTools: number;
  openedAt: number;
  /** When it ended; until then, when it was opened. */
  at: number;
};

/** Totals of a session's ended model calls, for each model and purpose. */
export type SessionUsageTable = {
  sessionId: string;
  model: string;
  purpose: string;
  calls: number;
  /** How many of them have an unknown cost. */
  unsure: number;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** Micro-dollars. */
  cost: number;
};

/** Money spent and reserved, micro-dollars: by run, session, tree, person and day, or day. */
export type BudgetsTable = {
  key: string;
  spent: number;
  reserved: number;
  /** Set by `/budget`, in place of the configured limit. */
  raisedTo: number | null;
  /** The latest of: a call in it ended, it was raised, it began. */
  touchedAt: number;
};

/** Sub-agents, live and ended; see `ChildRecord`. Rows stay. */
export type ChildrenTable = {
  /** Hash of parent session, run and call; also the id of the child's session. */
  id: string;
  treeId: string;
  parentSessionId: string;
  parentLaneKey: string;
  parentRunId: string;
  parentCallId: string;
  laneKey: string;
  laneClass: string;
  agentId: string;
  depth: number;
  label: string | null;
  task: string;
  mode: ChildMode;
  /** Where its result is announced, and with what authority: those of the parent run at the time of the spawn. */
  route: string | null;
  authority: string;
  state: ChildState;
  status: ChildStatus | null;
  result: string | null;
  promptTokens: number;
  completionTokens: number;
  /** Micro-dollars. */
  cost: number;
  told: ChildTold | null;
  /** Why it was asked to stop; the first reason stays. */
  stopReason: string | null;
  stopAt: number | null;
  /** Longest time from its first claim, ms; null: as long as its tree. */
  timeoutMs: number | null;
  deadlineAt: number;
  createdAt: number;
  startedAt: number | null;
  endedAt: number | null;
  archivedAt: number | null;
};

/** Budget of everything below one top-level run; has that run's id. Its row lock guards the counts. */
export type TreesTable = {
  id: string;
  /** Session of the top-level run. */
  sessionId: string;
  /** Children that have not ended. */
  live: number;
  /** All children, ended ones included. */
  total: number;
  /** Subtasks of all graphs, which have a limit of their own. */
  nodes: Generated<number>;
  createdAt: number;
  deadlineAt: number;
};

/** Tasks: graphs of subtasks, and messages that ask an agent for something. Rows stay. */
export type TasksTable = {
  /** Hash of session, run and call, or of agent and ids of the message that asks for it. */
  id: string;
  /** The subtask that its coordinator was given, if any. */
  parentTaskId: string | null;
  parentSubtaskId: string | null;
  /** Its coordinator: session, lane, agent, and the run and call that delegated; no call for a message. */
  sessionId: string;
  laneKey: string;
  agentId: string;
  treeId: string;
  runId: string;
  callId: string | null;
  /** Who sent it as a message, and JSON of that message's head. */
  caller: string | null;
  head: string | null;
  title: string;
  instructions: string;
  mode: TaskMode;
  state: TaskState;
  /** Where its answer goes, and with what authority: those of the run that delegated. */
  route: string | null;
  authority: string;
  /** JSON of `ChildRole`: what its peers may do; null until it has a graph. */
  role: string | null;
  /** Why it failed, also while the coordinator still has to say so. */
  error: string | null;
  result: string | null;
  told: TaskTold | null;
  /** How often it has come to an end; each has one turn of the coordinator. */
  rounds: number;
  /** 1 while there are nodes to dispatch or peers to stop that the last step has left. */
  isUnsettled: number;
  /** Raised by each change. */
  revision: number;
  /** 1 until the files that show it are of this revision. */
  isUnshown: number;
  createdAt: number;
  endedAt: number | null;
};

/** Nodes of the graphs. */
export type SubtasksTable = {
  taskId: string;
  /** The coordinator's name for it. */
  id: string;
  ordinal: number;
  /** Id of an agent, or `self`. */
  agentId: string;
  state: SubtaskState;
  /** How often it was dispatched; with the ids, the key of that dispatch. */
  tries: number;
  onFailure: FailurePolicy;
  /** The peer of the current try. */
  childId: string | null;
  /** JSON of ids. */
  dependsOn: string;
  /** Longest time of a try from its first step, ms; null: as long as its tree. */
  timeoutMs: number | null;
  error: string | null;
  startedAt: number | null;
  endedAt: number | null;
  instructions: string;
  expected: string | null;
};

/** The mail of agents. */
export type TaskMessagesTable = {
  /** `<task>/<subtask>/<try>/task` or `…/reply`; for replies that don't count, a hash of what they say at the end. */
  id: string;
  type: TaskMessage['type'];
  taskId: string;
  subtaskId: string;
  sender: string;
  recipient: string;
  status: TaskMessage['status'];
  state: TaskMessage['state'];
  reason: TaskMessage['reason'] | null;
  createdAt: number;
  body: string;
};

/** Rows that are locked while the running lanes of a class are counted. */
export type LaneClassesTable = { name: string };
