/** Reads tasks for the files that show them, within bounds: bodies of messages are read one by one. */
import { sql } from 'kysely';
import type { TaskMessage, TaskView } from '#contracts/task.ts';
import type { StoreQuery } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { oneOf } from '../base/row-access.ts';
import { readTask } from '../tasks/task.ts';
import { findSentTask, type SentTask } from './read-sent-task.ts';
import { findTask } from './read-tasks.ts';

/** How much of a result the file of a task may show, characters. */
const excerptChars = 20_000;

/** A message without its text. */
export type TaskMessageFacts = Omit<TaskMessage, 'body' | 'reason'>;

/** A task with everything that its files show, but for the messages' texts. */
export type TaskFiles = {
  readonly task: TaskView;
  /** Its files may show an earlier revision. */
  readonly isUnshown: boolean;
  readonly instructions: string;
  readonly result: string | undefined;
  /** Facts for its sender, if it came as a message. */
  readonly sent: SentTask | undefined;
  /** The messages that count, oldest first. */
  readonly messages: readonly TaskMessageFacts[];
  /** Beginnings of the results, by subtask. */
  readonly results: Readonly<Record<string, string>>;
  /** How many replies didn't count. */
  readonly lateReplies: number;
};

/** Reads it; undefined when there is no such task. */
export const readTaskFiles: StoreQuery<{ readonly taskId: string }, TaskFiles | undefined> = {
  query: 'readTaskFiles',
  run: async (tx, { taskId }) => {
    const task = await findTask.run(tx, { taskId });
    const row = await readTask(tx, taskId);
    if (!task || !row) return undefined;
    const rows = await messagesOf.all(tx, { taskId });
    const counted = rows.filter(({ state }) => state !== 'archived');
    const messages = counted.map(({ sender: from, recipient: to, text: _, ...facts }) => ({
      ...facts,
      ...{ from, to },
    }));
    const replies = counted.filter(({ type }) => type === 'reply');
    return {
      ...{
        task,
        isUnshown: row.isUnshown === 1,
        instructions: row.instructions,
        result: row.result ?? undefined,
        messages,
      },
      sent: await findSentTask.run(tx, { taskId }),
      results: Object.fromEntries(replies.map(({ subtaskId, text }) => [subtaskId, text])),
      lateReplies: rows.length - counted.length,
    };
  },
};

const messagesOf = prepared((db, of: QueryParams<{ taskId: string }>) =>
  db
    .selectFrom('taskMessages')
    .select(['id', 'type', 'taskId', 'subtaskId', 'sender', 'recipient', 'status', 'state', 'createdAt'])
    .select(
      sql<string>`case when "type" = 'reply' then substr("body", 1, ${sql.lit(excerptChars)}) else '' end`.as(
        'text',
      ),
    )
    .where('taskId', '=', of.taskId)
    .orderBy('createdAt')
    .orderBy('id'),
);

/** Reads the text of a message; empty when there is none. */
export const readMessageBody: StoreQuery<{ readonly id: string }, string> = {
  query: 'readMessageBody',
  run: async (tx, { id }) => (await bodyOf.first(tx, { id }))?.body ?? '',
};

const bodyOf = prepared((db, of: QueryParams<{ id: string }>) =>
  db.selectFrom('taskMessages').select('body').where('id', '=', of.id),
);

/** Reads which of these are tasks, newest first. */
export const readTaskAges: StoreQuery<
  { readonly ids: readonly string[] },
  readonly { readonly id: string; readonly isEnded: boolean }[]
> = {
  query: 'readTaskAges',
  run: async (tx, { ids }) => {
    const rows = await agesOf.all(tx, { ids: JSON.stringify(ids) });
    return rows.map(({ id, endedAt }) => ({ id, isEnded: endedAt !== null }));
  },
};

const agesOf = prepared((db, of: QueryParams<{ ids: string }>, dialect) =>
  db
    .selectFrom('tasks')
    .select(['id', 'endedAt'])
    .where('id', ...oneOf(of.ids, dialect))
    .orderBy('createdAt', 'desc')
    .orderBy('id'),
);
