/** The files of mailboxes: which message lies where, by its state. */
import type { TaskFiles, TaskMessageFacts } from '../store/reads/read-task-files.ts';

/** A message's file. */
export type MailFile = {
  /** Owner of the mailbox: an agent's id, or another name that has none. */
  readonly owner: string;
  /** Its place below the workspace. */
  readonly path: string;
  /** Where it lay before, if it has been moved. */
  readonly before?: string;
  readonly message: TaskMessageFacts;
};

/** Returns the file of each message in its sender's and its recipient's mailbox; of several tries, the last one's. */
export function mailFilesOf({ messages }: Pick<TaskFiles, 'messages'>): readonly MailFile[] {
  const latest = new Map(messages.map((message) => [mailNameOf(message), message]));
  return [...latest].flatMap(([name, message]) => {
    const places = [
      { owner: message.to, box: 'inbox' },
      { owner: message.from, box: 'outbox' },
    ];
    return places.map(({ owner, box }) =>
      message.state === 'new'
        ? { owner, path: `${box}/${name}`, message }
        : { owner, path: `archive/${name}`, before: `${box}/${name}`, message },
    );
  });
}

/** The folders of a mailbox. */
export const mailFolders = ['inbox', 'outbox', 'archive'] as const;

/**
 * Returns the name of a message's file, `<task>-<subtask>.md` or `<task>-<subtask>-reply.md`; without a subtask, that of
 * the message that is the task. A subtask whose own name ends like a reply's gets an ending of its own, so that no two
 * messages share a name.
 */
export function mailNameOf({
  taskId,
  subtaskId,
  type,
}: Pick<TaskMessageFacts, 'taskId' | 'subtaskId' | 'type'>): string {
  const name = subtaskId === '' ? taskId : `${taskId}-${subtaskId}`;
  if (type === 'reply') return `${name}-reply.md`;
  return /(^|-)(reply|task)$/i.test(subtaskId) ? `${name}-task.md` : `${name}.md`;
}
