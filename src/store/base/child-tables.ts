import type { ChildMode, ChildState, ChildStatus, ChildTold } from '#contracts/child.ts';

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
  /** Where its result is announced, and with whose authority: the parent run's, from the time of the spawn. */
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
  /** How long it may take from its first claim on; null: as long as its tree. */
  timeoutMs: number | null;
  deadlineAt: number;
  createdAt: number;
  startedAt: number | null;
  endedAt: number | null;
  archivedAt: number | null;
};

/** Budget of everything below one top-level run, whose id it has. Its row lock guards the counts. */
export type TreesTable = {
  id: string;
  /** Session of the top-level run. */
  sessionId: string;
  /** Children that have not ended. */
  live: number;
  /** Children that there ever were. */
  total: number;
  createdAt: number;
  deadlineAt: number;
};

/** Rows to lock while the running lanes of a class are counted. */
export type LaneClassesTable = { name: string };
