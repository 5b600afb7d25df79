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
  createdAt: number;
  deadlineAt: number;
};

/** Rows that are locked while the running lanes of a class are counted. */
export type LaneClassesTable = { name: string };
