/**
 * Writes the files that show tasks: `tasks/<id>/task.md` in the workspace of the task's agent, and the mailboxes of all
 * agents that take part. It runs after the commit, beside everything else, and nothing waits for it. The store says
 * what the files have to show (`isUnshown`), so a file that was never written is written later, by any process.
 */
import { fitBytes } from '#channel-kit/clean-text.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Probe } from '#contracts/probe.ts';
import type { WorkspaceWriter } from '#contracts/workspace-reader.ts';
import type { Store } from '../store/base/command.ts';
import { markTaskShown } from '../store/delegation/mark-task-shown.ts';
import { readMessageBody, readTaskFiles, type TaskFiles } from '../store/reads/read-task-files.ts';
import { type MailFile, mailFilesOf, mailNameOf } from './mailbox.ts';
import { pruneTasks } from './prune-tasks.ts';
import { renderTaskFile } from './task-file.ts';
import { formatTaskMail, wholeTask } from './task-message.ts';
import { replyTo } from './task-reply.ts';

/** Shows tasks in workspaces. */
export interface Projector {
  /** Has the task's files written soon. Never waits, never throws. */
  show(taskId: string): void;
  /** Ends after the current file; the next start writes the rest. */
  stop(): Promise<void>;
}

export type ProjectorDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  /** Undefined while no plugin writes into workspaces: then nothing is shown, and nothing is kept for later. */
  writer(): WorkspaceWriter | undefined;
  /** Returns an agent's workspace; undefined if there is no such agent. */
  workspaceOf(agent: string): string | undefined;
};

/** Shortest time between two versions of one task's files, ms. */
const intervalMs = 1_000;
/** How long a task waits after its disk has failed, ms; doubled with each failure. */
const retryMs = { first: 2_000, longest: 300_000 } as const;
/** Longest file of a message, bytes. */
const maxMailBytes = 256 * 1024;
/** Remembered tasks, so that a message that lies where it should isn't written again. */
const maxRemembered = 200;

type WaitingTask = {
  readonly dueAt: number;
  readonly failures: number;
  /** Its files are written even if another process has marked them: this one may have put an older version over them. */
  readonly isForced: boolean;
};

/** Creates the projector. It writes one task at a time. */
export function createProjector(deps: ProjectorDeps): Projector {
  const { clock, log } = deps;
  const waiting = new Map<string, WaitingTask>();
  const shown = createMemory();
  const stopping = new AbortController();
  let woken = new AbortController();
  let running: Promise<void> | undefined;

  const showOne = async (taskId: string, { failures, isForced }: WaitingTask) => {
    try {
      const isCurrent = await showTask(deps, {
        ...{ taskId, isForced, written: shown.of(taskId), signal: stopping.signal },
      });
      if (!isCurrent) waiting.set(taskId, { dueAt: clock.now() + intervalMs, failures: 0, isForced: true });
      else if (isCurrent && failures > 0) log.info({ taskId, failures }, 'task.files-recovered');
    } catch (error) {
      if (stopping.signal.aborted) return;
      // The disk is full, read-only or gone, or the database is.
      if (failures === 0) log.warn({ taskId, error }, 'task.files-failed');
      shown.forget(taskId);
      const waitMs = Math.min(retryMs.longest, retryMs.first * 2 ** failures);
      waiting.set(taskId, { dueAt: clock.now() + waitMs, failures: failures + 1, isForced: true });
    }
  };
  const loop = async () => {
    while (waiting.size > 0 && !stopping.signal.aborted) {
      woken = new AbortController();
      const [taskId, next] = [...waiting].reduce((a, b) => (b[1].dueAt < a[1].dueAt ? b : a));
      const leftMs = next.dueAt - clock.now();
      if (leftMs > 0) await clock.wait(leftMs, AbortSignal.any([stopping.signal, woken.signal]));
      else {
        waiting.delete(taskId);
        await showOne(taskId, next);
        shown.at(taskId, clock.now());
      }
    }
    running = undefined;
  };
  return {
    show: (taskId) => {
      if (stopping.signal.aborted || waiting.has(taskId)) return;
      const dueAt = (shown.lastAt(taskId) ?? -intervalMs) + intervalMs;
      waiting.set(taskId, { dueAt, failures: 0, isForced: false });
      woken.abort();
      running ??= loop();
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/** Remembers, of the latest tasks, when they were shown and which messages lie where. */
function createMemory() {
  type Shown = { readonly written: Map<string, string>; lastAt?: number };
  const tasks = new Map<string, Shown>();
  const entry = (taskId: string): Shown => {
    const known = tasks.get(taskId) ?? { written: new Map() };
    tasks.delete(taskId);
    tasks.set(taskId, known);
    for (const oldest of tasks.keys()) {
      if (tasks.size <= maxRemembered) break;
      tasks.delete(oldest);
    }
    return known;
  };
  return {
    of: (taskId: string) => entry(taskId).written,
    lastAt: (taskId: string) => tasks.get(taskId)?.lastAt,
    at: (taskId: string, now: number) => {
      entry(taskId).lastAt = now;
    },
    forget: (taskId: string) => tasks.get(taskId)?.written.clear(),
  };
}

type ShowInput = {
  readonly taskId: string;
  readonly isForced: boolean;
  /** The message that this process has written to each place. */
  readonly written: Map<string, string>;
  readonly signal: AbortSignal;
};

/** Writes the task's files. False if it has changed meanwhile. Throws what a failing disk or store throws. */
async function showTask(
  deps: ProjectorDeps,
  { taskId, isForced, written, signal }: ShowInput,
): Promise<boolean> {
  const { store, log, probe, workspaceOf } = deps;
  const files = await store.read(readTaskFiles, { taskId });
  if (!files || !(files.isUnshown || isForced)) return true;
  const writer = deps.writer();
  if (writer) {
    const to = { store, workspaceOf, files, writer, signal, written };
    const workspace = workspaceOf(files.task.agent);
    const refused = new Set<string>();
    const text = renderTaskFile(files);
    if (workspace !== undefined && !(await put(to, { workspace, path: taskPathOf(taskId), text })))
      refused.add(taskPathOf(taskId));
    const mail = [...mailFilesOf(files), ...ownMailOf(files)];
    for (const file of mail) if (!(await putMail(to, file))) refused.add(file.path);
    if (refused.size > 0) log.warn({ taskId, paths: [...refused].slice(0, 10) }, 'task.files-refused');
    if (files.task.endedAt !== undefined) await prune(to, mail);
    probe.reach('projected');
  }
  return store.write(markTaskShown, { taskId, revision: files.task.revision });
}

function taskPathOf(taskId: string): string {
  return `tasks/${taskId}/task.md`;
}

/** Returns the files of the message that is the task, and of the reply to it. */
function ownMailOf(files: TaskFiles): readonly MailFile[] {
  const { task, sent } = files;
  if (!sent) return [];
  const { id: taskId, agent, createdAt, endedAt } = task;
  const facts = { taskId, subtaskId: '', createdAt } as const;
  const status = task.state === 'failed' ? 'failed' : 'done';
  const asked = { ...facts, id: '', type: 'task', from: sent.head.from, to: agent, status: 'open' } as const;
  const replied = { ...facts, id: '', type: 'reply', from: agent, to: sent.head.from, status } as const;
  const name = mailNameOf(asked);
  if (endedAt === undefined)
    return [{ owner: agent, path: `inbox/${name}`, message: { ...asked, state: 'new' } }];
  return [
    {
      owner: agent,
      path: `archive/${name}`,
      before: `inbox/${name}`,
      message: { ...asked, state: 'handled' },
    },
    { owner: agent, path: `archive/${mailNameOf(replied)}`, message: { ...replied, state: 'handled' } },
  ];
}

type Target = Pick<ProjectorDeps, 'store' | 'workspaceOf'> & {
  readonly files: TaskFiles;
  readonly writer: WorkspaceWriter;
  readonly signal: AbortSignal;
  readonly written: Map<string, string>;
};

/** Writes a message to its place, and then removes it from where it lay. False if a place is taken by something else. */
async function putMail(to: Target, { owner, path, before, message }: MailFile): Promise<boolean> {
  const workspace = to.workspaceOf(owner);
  const place = `${workspace} ${path} ${before}`;
  const version = `${message.id} ${message.state}`;
  if (workspace === undefined || to.written.get(place) === version) return true;
  const isPut = await put(to, { workspace, path, text: await textOf(to, message) });
  const { signal } = to;
  const isMoved =
    before === undefined || (await to.writer.remove(workspace, before, { signal })) === 'removed';
  to.written.set(place, version);
  return isPut && isMoved;
}

async function textOf({ store, files }: Target, message: MailFile['message']): Promise<string> {
  const { id, type, taskId, subtaskId, from, to, status } = message;
  if (id !== '') {
    const body = await store.read(readMessageBody, { id });
    const ids = { taskId, subtaskId, from, to };
    return type === 'reply'
      ? formatTaskMail({ head: { type, ...ids, status: status === 'failed' ? 'failed' : 'done' }, body })
      : formatTaskMail({ head: { type, ...ids }, body });
  }
  // The message that is the task, with its sender's ids.
  const reply = type === 'reply' && files.sent && replyTo(files.sent);
  if (reply) return reply;
  const { head } = files.sent ?? { head: { taskId, subtaskId: wholeTask, from } };
  return formatTaskMail({ head: { type: 'task', ...head, to }, body: files.instructions });
}

async function put(
  { writer, signal }: Target,
  file: { readonly workspace: string; readonly path: string; readonly text: string },
): Promise<boolean> {
  const bytes = Buffer.from(fitBytes(file.text, maxMailBytes));
  return (await writer.write(file.workspace, file.path, { bytes, signal })) === 'written';
}

/** Removes the files of old tasks from the workspaces that this one has written to. */
async function prune(to: Target, mail: readonly MailFile[]): Promise<void> {
  const owners = new Set([to.files.task.agent, ...mail.map(({ owner }) => owner)]);
  const workspaces = new Set([...owners].flatMap((owner) => to.workspaceOf(owner) ?? []));
  for (const workspace of workspaces) await pruneTasks(to, workspace);
}
