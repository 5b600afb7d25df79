/** Messages between agents (spec 8): tasks for agents, and replies to the subtasks of a graph. */
import { z } from 'zod';
import type { TaskDoor } from '../service/task-door.ts';
import { operation, Refusal } from './operation.ts';

export type TaskMessagesDeps = { readonly taskDoor: TaskDoor };

/** The longest message, UTF-16 units: a body of 100 KB and its head. */
const maxTaskMessageChars = 110_000;
/** JSON may need six bytes for a character. */
const maxBytes = 6 * maxTaskMessageChars + 1024;

/** A task that comes again isn't done again: the same reply is sent. */
export const sendTaskMessage = operation({
  name: 'tasks/send',
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  once: 'own',
  summary:
    'Sends an agent a task as a message with a head, or a reply to a subtask; the same message again has the same reply',
  maxBytes,
  input: z.strictObject({
    message: z
      .string()
      .min(1)
      .max(maxTaskMessageChars)
      .describe('A head in YAML between two lines `---`, then the body'),
    agent: z
      .string()
      .min(1)
      .max(200)
      .exactOptional()
      .describe('Absent: the agent that the head names, else the default agent'),
    waitMs: z.int().min(0).max(600_000).default(0).describe('How long to wait for the task’s end'),
  }),
  answer: z.object({
    id: z.string().exactOptional().describe('Parley’s id of the task'),
    state: z
      .enum([
        ...(['pending', 'in-progress', 'planning', 'executing', 'aggregating', 'done', 'failed'] as const),
        ...(['recorded', 'late', 'orphan'] as const),
      ])
      .describe('The task’s state. Of a reply: `recorded`, or why it doesn’t count and is only archived'),
    isKnown: z.boolean().exactOptional().describe('The same message came before'),
    reply: z.string().exactOptional().describe('Once the task has ended: the message that replies to it'),
  }),
  refusals: ['invalid_input', 'key_reused'],
  run: async ({ taskDoor }: TaskMessagesDeps, { message: text, agent, waitMs }, { by, signal }) => {
    const sent = await taskDoor.send({ text, agent, waitMs, caller: by }, signal);
    switch (sent.kind) {
      case 'task': {
        const { id, state, isKnown, reply } = sent;
        return { id, state, isKnown, ...(reply !== undefined && { reply }) };
      }
      case 'reply':
        return { state: sent.state };
      case 'refused':
        return new Refusal('invalid_input', `The task message isn't valid: ${sent.problem}.`);
      case 'reused':
        return new Refusal(
          'key_reused',
          'Another task with this task_id and subtask_id was sent to the agent. Use a new task_id.',
        );
      default:
        return sent satisfies never;
    }
  },
});
