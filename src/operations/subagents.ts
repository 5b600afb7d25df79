import { z } from 'zod';
import { maxTextLength, tooLongText } from '#channel-kit/client-frames.ts';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { ChildRecord } from '#contracts/child.ts';
import { stripText } from '../logging/redaction.ts';
import { newRowId } from '../store/base/keys.ts';
import { findChild, readChildren } from '../store/children/child.ts';
import { steerChild, stopChild } from '../store/children/operate-child.ts';
import { readTranscriptPage } from '../store/reads/read-transcript.ts';
import { type ChangeDeps, operation, Refusal, refuseId, type StoreDeps } from './operation.ts';
import { transcriptMessage } from './sessions.ts';

/** How many of the newest sub-agents these operations know. */
const known = 500;
/** How many messages `log` returns. */
const logged = 200;

const child = z.object({
  id: z.string(),
  treeId: z.string(),
  parentSessionId: z.string(),
  parentLaneKey: z.string(),
  parentRunId: z.string(),
  parentCallId: z.string(),
  sessionId: z.string(),
  laneKey: z.string(),
  laneClass: z.string(),
  agentId: z.string(),
  depth: z.int(),
  authority: z.string(),
  label: z.string().optional(),
  task: z.string(),
  mode: z.enum(['wait', 'announce', 'task']),
  state: z.enum(['queued', 'running', 'done']),
  status: z.enum(['completed', 'failed', 'timed-out', 'stopped', 'lost']).optional(),
  result: z.string().optional().describe('Absent in lists'),
  told: z.enum(['tool', 'lane', 'task', 'none']).optional(),
  usage: z.object({ promptTokens: z.int(), completionTokens: z.int(), cost: z.int() }).readonly(),
  stopAt: z.int().optional(),
  deadlineAt: z.int(),
  createdAt: z.int(),
  startedAt: z.int().optional(),
  endedAt: z.int().optional(),
  archivedAt: z.int().optional(),
});

export const listSubagents = operation({
  name: 'subagents',
  method: 'GET',
  right: 'operator',
  scope: 'read',
  summary: 'Lists the newest sub-agents; cost in micro-dollars',
  answer: z.object({ subagents: z.array(child).readonly() }),
  run: async ({ store }: StoreDeps) => ({ subagents: await store.read(readChildren, { limit: known }) }),
});

const id = z.string().min(1).max(100).describe('As listed, or the beginning of it');
const naming = { right: 'operator', input: z.object({ id }), refusals: ['not_found', 'ambiguous'] } as const;

export const showSubagent = operation({
  ...naming,
  name: 'subagents/info',
  scope: 'read',
  method: 'GET',
  summary: 'Shows a sub-agent with its task and result',
  answer: child,
  run: async ({ store }: StoreDeps, asked) => {
    const found = await findOne({ store }, asked.id);
    // Lists don't include results.
    return found instanceof Refusal ? found : ((await store.read(findChild, { childId: found.id })) ?? found);
  },
});

/** The page shows the log of a subtask. */
export const showSubagentLog = operation({
  ...naming,
  right: 'owner',
  name: 'subagents/log',
  scope: 'read',
  method: 'GET',
  summary: 'Shows what a sub-agent has read and said: its latest messages, newest last',
  answer: z.object({ messages: z.array(transcriptMessage).readonly() }),
  run: async ({ store }: StoreDeps, asked) => {
    const found = await findOne({ store }, asked.id);
    if (found instanceof Refusal) return found;
    const { sessionId } = found;
    return { messages: await store.read(readTranscriptPage, { sessionId, limit: logged }) };
  },
});

const directing = { ...naming, method: 'POST', refusals: [...naming.refusals, 'not_possible'] } as const;

/** The message has the sub-agent's own authority, not the operator's. */
export const steerSubagent = operation({
  ...directing,
  name: 'subagents/steer',
  scope: 'operate',
  summary: 'Sends a sub-agent a message, which it reads before its next step',
  input: z.strictObject({
    id,
    text: z
      .string()
      .max(maxTextLength, tooLongText)
      .refine((text) => text.trim() !== '', 'The message is empty.'),
  }),
  answer: z.object({ id: z.string() }),
  run: async ({ store, start }: ChangeDeps, { id: asked, text }, { by }) => {
    const found = await findOne({ store }, asked);
    if (found instanceof Refusal) return found;
    const steer = { childId: found.id, id: newRowId(), text, authority: 'owner', by } as const;
    const { kind, effects } = await store.write(steerChild, steer);
    start(effects);
    return kind === 'done' ? { id: found.id } : hasEnded(asked);
  },
});

export const stopSubagent = operation({
  ...directing,
  name: 'subagents/stop',
  scope: 'operate',
  summary: 'Stops a sub-agent and everything below it',
  input: z.strictObject({ id }),
  answer: z.object({ id: z.string(), stopped: z.int() }),
  run: async ({ store, start }: ChangeDeps, { id: asked }) => {
    const found = await findOne({ store }, asked);
    if (found instanceof Refusal) return found;
    const { kind, effects, stopped } = await store.write(stopChild, { childId: found.id });
    start(effects);
    return kind === 'done' ? { id: found.id, stopped } : hasEnded(asked);
  },
});

function hasEnded(id: string): Refusal {
  const text = `${stripText(id)} has already ended. See: ${parleyCommand} subagents info ${stripText(id)}`;
  return new Refusal('not_possible', text);
}

/** Finds a sub-agent by its id or the beginning of it. */
async function findOne({ store }: StoreDeps, id: string): Promise<ChildRecord | Refusal> {
  const children = await store.read(readChildren, { limit: known });
  const [found, ...others] = children.filter((one) => one.id.startsWith(id.toLowerCase()));
  if (found !== undefined && others.length === 0) return found;
  const kind = found === undefined ? 'none' : 'several';
  return refuseId({ kind }, id, { noun: 'sub-agent', list: 'subagents list' });
}
