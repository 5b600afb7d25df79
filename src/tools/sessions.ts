import { z } from 'zod';
import { type TranscriptMessage, textOf } from '#contracts/message.ts';
import { defineTool, maxResultBytes, type Tool, type ToolRun } from '#contracts/tool.ts';
import type { Store } from '../store/base/command.ts';
import { type MessageIds, readMessageIds } from '../store/reads/own-messages.ts';
import { readLaneStatus, readSessions } from '../store/reads/read-sessions.ts';
import { readTranscriptPage } from '../store/reads/read-transcript.ts';

const nothing = z.object({});

/** Creates the tool that shows the state of the agent's own session. */
export function createSessionStatusTool(store: Store, run: ToolRun): Tool {
  return defineTool<z.infer<typeof nothing>>({
    name: 'session_status',
    description: 'Show the state of this conversation: messages, tokens, cost, and what waits in its queue.',
    inputSchema: nothing,
    parallelSafe: true,
    replay: 'safe',
    authority: 'guest',
    execute: async () => {
      const [session] = await store.read(readSessions, { ids: [run.sessionId], limit: 1 });
      const lane = await store.read(readLaneStatus, { laneKey: run.sessionKey });
      return { text: JSON.stringify({ session, lane }, undefined, 1) };
    },
  });
}

const listInput = z.object({ limit: z.int().min(1).max(100).default(20) });

/** Creates the tool that lists conversations; only the owner may see those of others. */
export function createSessionsListTool(store: Store, run: ToolRun): Tool {
  return defineTool<z.infer<typeof listInput>>({
    name: 'sessions_list',
    description: 'List conversations, the newest first, with their session keys.',
    inputSchema: listInput,
    parallelSafe: true,
    replay: 'safe',
    authority: 'guest',
    execute: async ({ limit }) => {
      const scope = run.authority === 'owner' ? {} : { keys: [run.sessionKey] };
      const sessions = await store.read(readSessions, { ...scope, limit });
      return { text: JSON.stringify(sessions, undefined, 1) };
    },
  });
}

const historyInput = z.object({
  sessionId: z.string().optional().describe('The session to read; by default this conversation.'),
  before: z.int().optional().describe('Only messages before this position.'),
  limit: z.int().min(1).max(200).default(30),
});

/** Creates the tool that reads a transcript: the session's own, or any for the owner. Others' ids seem not to exist. */
export function createSessionsHistoryTool(store: Store, run: ToolRun): Tool {
  return defineTool<z.infer<typeof historyInput>>({
    name: 'sessions_history',
    description: 'Read earlier messages of this conversation, or of another one by its session id.',
    inputSchema: historyInput,
    parallelSafe: true,
    replay: 'safe',
    authority: 'guest',
    execute: async ({ sessionId = run.sessionId, before, limit }) => {
      if (sessionId !== run.sessionId && run.authority !== 'owner')
        throw new Error(`There is no session ${sessionId}.`);
      const page = await store.read(readTranscriptPage, {
        sessionId,
        limit,
        ...(before !== undefined && { before }),
      });
      if (page.length === 0) return { text: 'There are no such messages.' };
      const ids = await store.read(readMessageIds, { ids: page.map(({ id }) => id) });
      return { text: newestOf(page, ids) };
    },
  });
}

/** Bytes reserved for the note about omitted messages. */
const noteBytes = 200;

/** Joins the messages in order, without the oldest ones if not all fit into a result. The newest is always included. */
function newestOf(page: readonly TranscriptMessage[], ids: MessageIds): string {
  const lines: string[] = [];
  let room = maxResultBytes - noteBytes;
  for (const { id, position, role, parts } of page.toReversed()) {
    const name = ids.get(id)?.length ? `[message ${ids.get(id)?.join(', ')}] ` : '';
    const line = `#${position} ${role}: ${name}${textOf(parts)}`;
    room -= Buffer.byteLength(line) + 1;
    if (room < 0 && lines.length > 0) break;
    lines.unshift(line);
  }
  const left = page.length - lines.length;
  const first = page[left]?.position;
  const note = `[${left} earlier ${left === 1 ? 'message' : 'messages'} left out for their length; continue with before: ${first}]`;
  return (left === 0 ? lines : [note, ...lines]).join('\n');
}
