/** Delegation: an agent breaks a task into a graph of subtasks, which peers or the agent itself work on. */
import { z } from 'zod';

const subtaskState = z.enum(['pending', 'dispatched', 'done', 'failed', 'skipped']);
/**
 * `pending → dispatched → done | failed | skipped`. `skipped`: it failed and its policy is `skip`, or it never started
 * because the task ended first.
 */
export type SubtaskState = z.output<typeof subtaskState>;

const taskState = z.enum([
  ...(['pending', 'in-progress', 'planning', 'executing', 'aggregating', 'done', 'failed'] as const),
]);
/**
 * A task that arrives as a message is `pending` until its first run, then `in-progress` if the agent does it directly,
 * or `planning` if it is to coordinate. With a graph it is `executing` while subtasks are open, and `aggregating` while
 * the coordinator writes the synthesis.
 */
export type TaskState = z.output<typeof taskState>;

/** `direct`: its agent does it alone. `coordinating`: it has a graph. */
export const taskModeSchema = z.enum(['direct', 'coordinating']);
/** A task's mode. */
export type TaskMode = z.output<typeof taskModeSchema>;

/**
 * Meaning of a subtask's failure: the task fails (`fail`), also after two more tries (`retry`), or those that depend on it
 * run without its result (`skip`).
 */
export const failurePolicySchema = z.enum(['fail', 'retry', 'skip']);
/** A subtask's policy. */
export type FailurePolicy = z.output<typeof failurePolicySchema>;

/** Names the coordinator itself as the worker of a subtask. */
export const coordinatorItself = 'self';

/**
 * Who learned of a task's end: the lane that gave it, the coordinator of the task above, the program that sent it as a
 * message, or nobody, because nothing waits for it any more.
 */
export type TaskTold = 'lane' | 'parent' | 'caller' | 'none';

/** Form of a subtask's id: its name within the task. */
export const subtaskIdPattern = /^[a-zA-Z0-9][\w-]{0,39}$/;

/** Limits of a delegation, all of them checked in its transaction. */
export type TaskLimits = {
  /** How deep peers may be, 1 to 5: the limit on sub-agents. */
  readonly depth: number;
  /** Subtasks of all graphs below one top-level run, over its lifetime. */
  readonly nodes: number;
  /** How long a tree may spawn and work, ms. */
  readonly treeMs: number;
};

/** Why a delegation was refused; the model reads it and can do something else. */
export type DelegationRefusal = 'too_deep' | 'too_many_subtasks' | 'tree_out_of_time' | 'task_is_open';

const subtaskViewSchema = z.object({
  id: z.string(),
  /** Id of the agent that works on it; `self` for the coordinator. */
  agent: z.string(),
  state: subtaskState,
  /** How often it was dispatched. */
  tries: z.number(),
  dependsOn: z.array(z.string()).readonly(),
  onFailure: failurePolicySchema,
  /** First line of its instructions. */
  name: z.string(),
  /** Its peer: the sub-agent that works or last worked on it. */
  childId: z.string().exactOptional(),
  /** The task that its peer has made of it. */
  taskId: z.string().exactOptional(),
  /** When it was last dispatched, and when it ended; ms since the epoch. */
  startedAt: z.number().exactOptional(),
  endedAt: z.number().exactOptional(),
  /** Why it failed or was skipped. */
  error: z.string().exactOptional(),
  /** Prompt and completion tokens of its peers so far; 0 for `self`. */
  tokens: z.number(),
  /** Micro-dollars of its peers so far. */
  cost: z.number(),
});

/** A subtask as people see it. */
export type SubtaskView = Readonly<z.output<typeof subtaskViewSchema>>;

/** Schema of a task as people see it. */
export const taskViewSchema = z.object({
  id: z.string(),
  title: z.string(),
  agent: z.string(),
  laneKey: z.string(),
  mode: taskModeSchema,
  state: taskState,
  /** Raised by each change. */
  revision: z.number(),
  /** The task and subtask that it is part of. */
  parent: z.object({ taskId: z.string(), subtaskId: z.string() }).exactOptional(),
  /** Why it failed, or is about to. */
  error: z.string().exactOptional(),
  createdAt: z.number(),
  endedAt: z.number().exactOptional(),
  /** In the order in which they were given. */
  subtasks: z.array(subtaskViewSchema).readonly(),
});

/** A task as people see it in lists and as a graph, without instructions and results. */
export type TaskView = Readonly<z.output<typeof taskViewSchema>>;

/** Schema of a task in the activity of a conversation. */
export const taskActivitySchema = taskViewSchema.extend({
  /** How many subtasks are in each state. Present if the graph is large, so that `subtasks` has only those that matter. */
  counts: z.partialRecord(subtaskState, z.number()).exactOptional(),
});

/** A task in the activity of a conversation. */
export type TaskActivity = Readonly<z.output<typeof taskActivitySchema>>;

/** Schema of a task with everything that was asked and said. */
export const taskRecordSchema = taskViewSchema.extend({
  instructions: z.string(),
  /** Rights with which everybody works on it. */
  authority: z.string(),
  /** The synthesis, or what the coordinator said about the failure. */
  result: z.string().exactOptional(),
  /** Instructions and results of the subtasks, by id. */
  texts: z.record(
    z.string(),
    z.object({
      instructions: z.string(),
      expected: z.string().exactOptional(),
      result: z.string().exactOptional(),
    }),
  ),
});

/** A task with instructions and results. */
export type TaskRecord = Readonly<z.output<typeof taskRecordSchema>>;

/** A message between agents: a task for one, or the reply to it. */
export type TaskMessage = {
  readonly id: string;
  readonly type: 'task' | 'reply';
  readonly taskId: string;
  readonly subtaskId: string;
  /** Agent ids; `human` for a person or a program. */
  readonly from: string;
  readonly to: string;
  /** `open` for a task; `done` or `failed` for a reply. */
  readonly status: 'open' | 'done' | 'failed';
  readonly body: string;
  /**
   * A task is `new` until its subtask has ended, then `handled`. A reply is `handled` at once, or `archived` if it
   * doesn't count, because it is late or belongs to nothing (`reason`).
   */
  readonly state: 'new' | 'handled' | 'archived';
  readonly reason: 'late' | 'orphan' | undefined;
  readonly createdAt: number;
};
