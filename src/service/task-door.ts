/**
 * How tasks and replies come in as messages from programs. A task that comes again is the same task: it gets the stored
 * reply once there is one, and its agent does nothing twice.
 */
import type { Clock } from '#contracts/clock.ts';
import { changesLane } from '#contracts/feed.ts';
import type { Probe } from '#contracts/probe.ts';
import type { TaskState } from '#contracts/task.ts';
import { parseTaskMail, type ReplyHead, type TaskHead } from '../mail/task-message.ts';
import { replyTo } from '../mail/task-reply.ts';
import type { Feed } from '../queue/feed.ts';
import type { Reservation } from '../queue/lane-workers.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { LaneSpec } from '../store/base/keys.ts';
import { type AcceptTaskInput, type AcceptTaskResult, acceptTask } from '../store/delegation/accept-task.ts';
import { taskIdOf } from '../store/delegation/delegate.ts';
import { type OutsideReply, replyToSubtask } from '../store/delegation/operate-task.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { findSentTask, type SentTask } from '../store/reads/read-sent-task.ts';
import { findAgent } from './find-agent.ts';

export type TaskMessageInput = {
  readonly text: string;
  /** The agent that it is sent to; absent: the one that its head names, else the default agent. */
  readonly agent?: string | undefined;
  /** Who sends it: `token:<name>` for the holder of a token, anything else for the owner. */
  readonly caller: string;
  /** How long to wait for the task's end, ms. */
  readonly waitMs: number;
};

export type SentMessage =
  /** `reply`: the message that answers it, once the task has ended. */
  | {
      readonly kind: 'task';
      readonly id: string;
      readonly state: TaskState;
      readonly isKnown: boolean;
      readonly reply: string | undefined;
    }
  | { readonly kind: 'reply'; readonly state: Exclude<OutsideReply['kind'], 'lesser-rights'> }
  | { readonly kind: 'refused'; readonly problem: string }
  /** The ids belong to another message. */
  | { readonly kind: 'reused' };

export type TaskDoorDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly probe: Probe;
  readonly feed: Pick<Feed, 'watch'>;
  readonly agents: readonly { readonly id: string }[];
  readonly defaultAgent: string;
  /** Describes the lane of one task of an agent. */
  laneFor(agent: string, taskId: string): LaneSpec;
  /** Starts the work that the commit made due. Never waits, never throws. */
  start(effects: Effects): void;
  reserve(laneClass: string, most: number): Reservation | undefined;
};

/** The entrance for messages between agents. */
export interface TaskDoor {
  /** Stores the message; resolves after the commit, or with the task's end. Aborting only ends the wait. */
  send(message: TaskMessageInput, signal: AbortSignal): Promise<SentMessage>;
}

/** Creates the entrance. */
export function createTaskDoor(deps: TaskDoorDeps): TaskDoor {
  return {
    send: async (message, signal) => {
      const parsed = await parseTaskMail(message.text);
      if (parsed.kind === 'refused') return parsed;
      const { head, body } = parsed.mail;
      if (head.type === 'reply') return sendReply(deps, message, { head, body });
      return sendTask(deps, message, { head, body, signal });
    },
  };
}

async function sendReply(
  { store, start }: TaskDoorDeps,
  { caller: by }: TaskMessageInput,
  { head, body }: { readonly head: ReplyHead; readonly body: string },
): Promise<SentMessage> {
  const { taskId, subtaskId, status } = head;
  const order = { taskId, subtaskId, status, body, by, authority: 'owner' } as const;
  const { kind, effects } = await store.write(replyToSubtask, order);
  start(effects);
  if (kind === 'lesser-rights') return { kind: 'refused', problem: 'the task has rights that you lack' };
  return { kind: 'reply', state: kind };
}

type NewTask = { readonly head: TaskHead; readonly body: string; readonly signal: AbortSignal };

async function sendTask(
  deps: TaskDoorDeps,
  message: TaskMessageInput,
  { head, body, signal }: NewTask,
): Promise<SentMessage> {
  const agent = agentFor(deps, message, head);
  if (typeof agent !== 'object') return { kind: 'refused', problem: agent };
  const { taskId, subtaskId, from, mode } = head;
  const { caller } = message;
  // A program learns nothing of another's tasks; the owner's places are one.
  const owner = caller.startsWith('token:') ? [caller] : [];
  const id = taskIdOf(['message', agent.id, taskId, subtaskId, ...owner]);
  const lane = deps.laneFor(agent.id, id);
  const stored = await storeTask(deps, {
    ...{ id, caller, authority: 'owner', body, lane },
    head: { taskId, subtaskId, from, ...(mode && { mode }) },
  });
  if (stored.kind === 'reused') return stored;
  const until = deps.clock.now() + message.waitMs;
  const task = await waitForEnd(deps, id, { laneKey: lane.key, until, signal });
  return { kind: 'task', id, state: task.state, isKnown: stored.kind === 'known', reply: replyTo(task) };
}

async function storeTask(
  { store, probe, start, reserve }: TaskDoorDeps,
  task: Omit<AcceptTaskInput, 'claims'>,
): Promise<AcceptTaskResult> {
  const slots = reserve(task.lane.class, 1);
  let runs: readonly ClaimedRun[] = [];
  try {
    const stored = await store.write(acceptTask, { ...task, ...(slots && { claims: slots.terms }) });
    if (stored.kind === 'reused') return stored;
    runs = stored.runs;
    if (stored.kind === 'accepted') probe.reach('item-enqueued');
    start(stored.effects);
    return stored;
  } finally {
    slots?.begin(runs);
  }
}

/** Returns the agent that a task is for; or what is wrong with it. */
function agentFor(
  { agents, defaultAgent }: TaskDoorDeps,
  { agent: asked }: TaskMessageInput,
  { to }: TaskHead,
): { readonly id: string } | string {
  const known = agents.map(({ id }) => id).join(', ');
  const addressee = findAgent(agents, to ?? asked, defaultAgent);
  if (!addressee) return `there is no agent "${to ?? asked}"; the agents are: ${known}`;
  const recipient = findAgent(agents, asked ?? to, defaultAgent);
  if (!recipient) return `there is no agent "${asked}"; the agents are: ${known}`;
  if (recipient.id === addressee.id) return recipient;
  return `the head says it is to "${to}", but it is sent to "${asked}"; make them the same`;
}

/** How often the store is read while waiting, in case the news of the end is lost, ms. */
const lookMs = 1000;

/** Reads the task until it has ended, the signal aborts, or that time. */
async function waitForEnd(
  { store, clock, feed }: TaskDoorDeps,
  taskId: string,
  {
    laneKey,
    until,
    signal,
  }: { readonly laneKey: string; readonly until: number; readonly signal: AbortSignal },
): Promise<SentTask> {
  const over = new AbortController();
  let changed = new AbortController();
  feed.watch(laneKey, (event) => changesLane(event) && changed.abort(), over.signal);
  try {
    for (;;) {
      // Created before reading, because a concurrent change may be missing from what was read.
      changed = new AbortController();
      const task = await store.read(findSentTask, { taskId });
      if (!task) throw new Error(`Task ${taskId} was not stored.`);
      const leftMs = until - clock.now();
      if (task.state === 'done' || task.state === 'failed' || leftMs <= 0 || signal.aborted) return task;
      await clock.wait(Math.min(lookMs, leftMs), AbortSignal.any([signal, changed.signal]));
    }
  } finally {
    over.abort();
  }
}
