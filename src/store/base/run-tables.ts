import type { Generated } from 'kysely';
import type { RunKind } from '#contracts/run-kind.ts';

export type SessionsTable = {
  id: string;
  key: string;
  /** The session whose sub-agent it is of. */
  parentSessionId: string | null;
  agentId: string;
  title: string | null;
  messageCount: number;
  promptTokens: number;
  completionTokens: number;
  /** The message shown to the model in place of those before `keptFrom`. */
  summaryMessageId: string | null;
  /** Position of the first message that it is shown as it was written; 0 without a summary. */
  keptFrom: Generated<number>;
  /** About how many tokens instructions and tools took in its last run; 0 before the first. */
  instructionTokens: Generated<number>;
  toolTokens: Generated<number>;
  /** Micro-dollars. */
  cost: number;
  /** Chosen by `/model` and `/think`, or at a sub-agent's spawn; null: as its agent has it. */
  model: string | null;
  reasoning: string | null;
  /** JSON of `ChildRole`, of the sessions above it, root first, and of `ForkPoint`: of children only. */
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
  /** Sentence for the model beside a person's message: when it was taken, and from whom. */
  note: string | null;
  model: string | null;
  /** Content omitted from requests (`Unsendable`), since one was rejected for it. */
  unsendable: string | null;
  runId: string | null;
  /** 0 while an assistant message streams: it does not count until it has its finish part. */
  isFinished: number;
  /** 1 when it stands for the messages before it: only the session's latest one is ever shown. */
  isSummary: Generated<number>;
  createdAt: number;
  updatedAt: number;
};

/** Runs, unfinished and finished. Rows stay. */
export type RunsTable = {
  id: string;
  laneKey: string;
  sessionId: string;
  /** `turn` answers messages; `compact` summarises the session because somebody asked; `title` names another one. */
  kind: Generated<RunKind>;
  state: 'active' | 'parked' | 'finished';
  epoch: number;
  /** How often a process began or resumed it after a crash; planned hand-overs don't count. */
  attempts: number;
  /** 1 when the last holder handed it over on purpose: that is no failed attempt. */
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
  /** Since when it waits for something outside, without slot or lease; null while it does not. */
  parkedAt: number | null;
  parkReason: string | null;
  /** JSON of `BudgetWait` while it is parked because a budget has no room. */
  budgetWait: string | null;
  /** How long it had worked when it was parked last: what counts against its time limit, ms. */
  workedMs: number;
  /** Budget that its children count against: its own id, or its child's or its announcement's tree. */
  treeId: string;
  startedAt: number;
  endedAt: number | null;
};

/** Calls of tools, from the message that makes one to its result. */
export type ToolCallsTable = {
  runId: string;
  /** The assistant message and the call id: servers repeat call ids. */
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

/** The ledger: one row per try of a model call. `open` until its one end. */
export type ModelCallsTable = {
  /** Epoch of the claim and number within it. */
  id: string;
  runId: string;
  sessionId: string;
  state: 'open' | 'settled' | 'unknown' | 'void';
  provider: string;
  model: string;
  purpose: string;
  /** Micro-dollars that `budgetKeys` hold for it, or its bound where no budget applies. */
  reserved: number;
  /** JSON of the keys in `budgets`; null where none applies. */
  budgetKeys: string | null;
  /** JSON of `CallRate`, while the bound isn't computed. */
  rate: string | null;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  cost: number;
  latencyMs: number;
  /** The model takes no tools, and was asked without those of the request. */
  withoutTools: number;
  openedAt: number;
  /** When it ended, or was opened. */
  at: number;
};

/** Sums of the model calls that a session has made and that have ended, for each model and purpose. */
export type SessionUsageTable = {
  sessionId: string;
  model: string;
  purpose: string;
  calls: number;
  /** Those among them whose cost nobody knows. */
  unsure: number;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** Micro-dollars. */
  cost: number;
};

/** Money spent and held, micro-dollars: by run, session, tree, person and day, or day. */
export type BudgetsTable = {
  key: string;
  spent: number;
  reserved: number;
  /** Set by `/budget`, in place of the configured limit. */
  raisedTo: number | null;
  /** When a call last ended in it, it was raised, or it began. */
  touchedAt: number;
};
