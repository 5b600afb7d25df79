import { readableText } from '../replies/reply-pipeline.ts';
import type { SentTask } from '../store/reads/read-sent-task.ts';
import { formatTaskMail } from './task-message.ts';

/** Returns the message that replies to the one that asked for the task; undefined until the task has ended. */
export function replyTo({ state, agent, head, result = '', error }: SentTask): string | undefined {
  if (state !== 'done' && state !== 'failed') return undefined;
  const { taskId, subtaskId, from: to } = head;
  const text = readableText(result, ['chat']);
  const body = [...(error === undefined ? [] : [`Failed: ${error}`]), text].join('\n\n').trim();
  return formatTaskMail({
    head: { type: 'reply', taskId, subtaskId, from: agent, to, status: state },
    body,
  });
}
