/** Sub-agents: a run hands a task to a child, which works in its own session and lane. */
import { z } from 'zod';
import type { LaneClass } from './lane-class.ts';
import type { Authority } from './outcome.ts';

/** Rights and shape of a child's runs, stored when it is spawned: a later configuration doesn't change them. */
export type ChildRole = {
  /** 1 for the child of a conversation, 2 for that child's child. */
  readonly depth: number;
  /** Name of the tool profile, `task` for example. */
  readonly profile: string;
  /** Tools it never gets, whatever its agent or profile allows. */
  readonly deniedTools: readonly string[];
};

/** Where a forked child's history begins: its parent's transcript before `position`. Nothing is copied. */
export type ForkPoint = {
  readonly sessionId: string;
  /** The parent's summary at that time, if it had one. */
  readonly summaryMessageId: string | null;
  /** Position of the first message that the parent was shown in its original form. */
  readonly keptFrom: number;
  /** Position of the message that spawned it: only earlier messages count. */
  readonly position: number;
};

/**
 * `wait`: the parent's call stays open for the result. `announce`: the result arrives as a separate item. `task`: it
 * works on a subtask, and its end is the reply.
 */
export type ChildMode = 'wait' | 'announce' | 'task';

const childState = z.enum(['queued', 'running', 'done']);
/** `queued` until its lane is first claimed; `done` once its record is written. */
export type ChildState = z.output<typeof childState>;

const childStatus = z.enum(['completed', 'failed', 'timed-out', 'stopped', 'lost']);
/** How a child ended, judged by its run and never by its own words. `lost`: nothing was left that could work on it. */
export type ChildStatus = z.output<typeof childStatus>;

/** Who got the result: the parent's call, an item in a lane, the task, or nobody, because nothing awaits it any more. */
export type ChildTold = 'tool' | 'lane' | 'task' | 'none';

/** Total usage of its runs' model calls. */
export type ChildUsage = {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Micro-dollars. */
  readonly cost: number;
};

/** Limits of a spawn, all of them checked in its transaction. */
export type SpawnLimits = {
  /** How deep children may be, 1 to 5. */
  readonly depth: number;
  /** Live children of one parent session. */
  readonly children: number;
  /** Live nodes of one tree. */
  readonly nodes: number;
  /** Children of one tree over its lifetime. */
  readonly lifetime: number;
  /** How long a tree may spawn and work, ms, counted from its first child. */
  readonly treeMs: number;
};

/** Limit that refused a spawn; the model reads it and can do something else. */
export type SpawnRefusal =
  | 'too_deep'
  | 'agent_not_allowed'
  | 'model_not_known'
  | 'too_many_children'
  | 'tree_full'
  | 'tree_exhausted'
  | 'tree_out_of_time';

/** A child's row; times in ms since the epoch, by the database's clock. */
export type ChildRecord = {
  /** Also the id of its session. */
  readonly id: string;
  readonly treeId: string;
  readonly parentSessionId: string;
  readonly parentLaneKey: string;
  readonly parentRunId: string;
  readonly parentCallId: string;
  readonly sessionId: string;
  readonly laneKey: string;
  readonly laneClass: LaneClass;
  readonly agentId: string;
  readonly depth: number;
  /** The authority of the run that spawned it: nobody with less may direct it. */
  readonly authority: Authority;
  readonly label: string | undefined;
  readonly task: string;
  readonly mode: ChildMode;
  readonly state: ChildState;
  /** Undefined until it is done, as `result`, `told` and `endedAt` are. */
  readonly status: ChildStatus | undefined;
  /** Last visible text, otherwise the last tool result; at most 100 KB. Undefined in lists. */
  readonly result: string | undefined;
  readonly told: ChildTold | undefined;
  readonly usage: ChildUsage;
  /** Deadline for stopping; undefined until it is asked to stop. */
  readonly stopAt: number | undefined;
  readonly deadlineAt: number;
  readonly createdAt: number;
  /** When its lane was first claimed. */
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  readonly archivedAt: number | undefined;
};

/** Schema of a child as people see it. */
export const childViewSchema = z.object({
  id: z.string(),
  /** The child that spawned it; absent when the conversation itself did. */
  parentId: z.string().exactOptional(),
  depth: z.number(),
  /** Its label or the beginning of its task, on one line. */
  name: z.string(),
  agentId: z.string(),
  state: childState,
  /** Present once it is done. */
  status: childStatus.exactOptional(),
  createdAt: z.number(),
  /** When its lane was first claimed. */
  startedAt: z.number().exactOptional(),
  endedAt: z.number().exactOptional(),
  isArchived: z.literal(true).exactOptional(),
  /** It works on a subtask, and is shown with its task. */
  isPeer: z.literal(true).exactOptional(),
  /** Prompt and completion tokens so far. */
  tokens: z.number(),
  /** Micro-dollars so far. */
  cost: z.number(),
});

/** A child as people see it in a list or a conversation, without the full task and the result. */
export type ChildView = Readonly<z.output<typeof childViewSchema>>;
