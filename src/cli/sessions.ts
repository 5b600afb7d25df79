import type { z } from 'zod';
import { localSecond, localTime } from '#channel-kit/time-text.ts';
import { type TranscriptMessage, textOf } from '#contracts/message.ts';
import { childDuration } from '../client/child-facts.js';
import * as sessions from '../operations/sessions.ts';
import * as subagents from '../operations/subagents.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';
import { callOperation, withOperations } from './call-operation.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';

type SessionReport = z.output<typeof sessions.listSessions.answer>['sessions'][number];
type SessionDetails = z.output<typeof sessions.showSession.answer>;

/** How many conversations a list shows. */
const listed = 100;
/** How many messages one read of an export returns. */
const pageSize = 200;

/** Lists the most recently used conversations. */
export async function listSessions(): Promise<CommandOutput> {
  const { sessions: found } = await callOperation(sessions.listSessions, { limit: listed });
  return { result: found, lines: found.length === 0 ? ['No conversations yet.'] : found.map(lineOf) };
}

/** Shows a conversation. `id`: the session's id or the beginning of it, or a session key. */
export async function showSession(id: string): Promise<CommandOutput> {
  const session = await callOperation(sessions.showSession, { id });
  return { result: session, lines: describe(session) };
}

/** Shows a conversation with every message, including those that a summary replaces. */
export async function exportSession(id: string): Promise<CommandOutput> {
  return withOperations(configForReading(), async (call) => {
    const session = await call(sessions.showSession, { id });
    const pages: z.output<typeof sessions.listMessages.answer>['messages'][] = [];
    for (let before: number | undefined; ; ) {
      const from = before === undefined ? {} : { before };
      const { messages } = await call(sessions.listMessages, { id: session.id, limit: pageSize, ...from });
      pages.unshift(messages);
      before = messages[0]?.position;
      if (messages.length < pageSize) break;
    }
    const messages = pages.flat();
    const lines = [...describe(session), ...messages.map(transcriptLine)];
    return { result: { ...session, messages }, lines };
  });
}

function describe(session: SessionDetails): readonly string[] {
  return [
    lineOf(session),
    `  ${session.key}`,
    `  from ${localTime(session.createdAt)} to ${localTime(session.updatedAt)}`,
    ...session.usage.map(usageLine),
    ...(session.summary === undefined ? [] : [`  summary: ${session.summary}`]),
  ];
}

function lineOf(session: SessionReport): string {
  const { id, title, key, agentId, messageCount, tokens, cost, isSummarized, endedAt } = session;
  const facts = [
    ...(session.lastSender === undefined ? [] : [describeSender(session.lastSender)]),
    `agent ${agentId}`,
    `messages: ${messageCount}`,
    `tokens: ${tokens.prompt + tokens.completion}`,
    `cost ${dollars(cost)}`,
    ...(isSummarized ? ['summarised'] : []),
    ...(endedAt === undefined ? [] : ['ended']),
  ];
  return `${id}  ${localTime(session.updatedAt)}  ${title === undefined ? key : `“${title}”`}  ${facts.join(', ')}`;
}

/** Returns `Ann on telegram (telegram:301)`; a name can be anything, so the reference is always there. */
function describeSender({ network, ref, name }: NonNullable<SessionReport['lastSender']>): string {
  const shown = cleanLabel(name);
  return shown === '' ? ref : `${shown} on ${network} (${ref})`;
}

function usageLine({
  purpose,
  calls,
  promptTokens,
  completionTokens,
  cost,
}: SessionDetails['usage'][number]): string {
  return `  ${purpose}: calls ${calls}, tokens ${promptTokens} in, ${completionTokens} out, cost ${dollars(cost)}`;
}

function dollars(cost: number): string {
  return `$${(cost / 1e6).toFixed(4)}`;
}

/** Lists the newest sub-agents. */
export async function listSubagents(): Promise<CommandOutput> {
  const { subagents: children } = await callOperation(subagents.listSubagents, {});
  return { result: children, lines: children.length === 0 ? ['No sub-agents.'] : children.map(subagentLine) };
}

/** Shows a sub-agent with its task and result; `id`: its id or the beginning of it. */
export async function showSubagent(id: string): Promise<CommandOutput> {
  const child = await callOperation(subagents.showSubagent, { id });
  const lines = [
    subagentLine(child),
    `  agent ${child.agentId}, parent session ${child.parentSessionId}, tree ${child.treeId}`,
    `  spawned ${localTime(child.createdAt)}, lane ${child.laneKey}`,
    `  task: ${child.task}`,
    ...(child.result === undefined ? [] : [`  result (told: ${child.told}): ${child.result}`]),
  ];
  return { result: child, lines };
}

/** Shows what a sub-agent has read and said. */
export async function showSubagentLog(id: string): Promise<CommandOutput> {
  const { messages } = await callOperation(subagents.showSubagentLog, { id });
  const lines = messages.map(transcriptLine);
  return { result: messages, lines: lines.length === 0 ? ['Nothing yet.'] : lines };
}

/** Sends a sub-agent a message, which has the sub-agent's own authority, not the operator's. */
export async function steerSubagent(id: string, text: string): Promise<CommandOutput> {
  const result = await callOperation(subagents.steerSubagent, { id, text });
  return { result, lines: ['It will read the message before its next step.'] };
}

/** Stops a sub-agent and its descendants. */
export async function stopSubagent(id: string): Promise<CommandOutput> {
  const result = await callOperation(subagents.stopSubagent, { id });
  const what = result.stopped === 1 ? '1 sub-agent' : `${result.stopped} sub-agents`;
  return { result, lines: [`Told ${what} to stop.`] };
}

function subagentLine(child: z.output<typeof subagents.showSubagent.answer>): string {
  const { id, depth, state, status, usage, label, task } = child;
  const tokens = usage.promptTokens + usage.completionTokens;
  const facts = [`depth ${depth}`, status ?? state, childDuration(child), `tokens: ${tokens}`];
  const name = (label ?? task).replace(/\s+/g, ' ').slice(0, 60).toWellFormed();
  return `${id}  ${facts.join(', ')}, cost $${(usage.cost / 1e6).toFixed(4)}  “${name}”`;
}

type Shown = Pick<TranscriptMessage, 'createdAt' | 'role'> & {
  readonly parts: readonly { readonly type: string; readonly data: object }[];
};

/** Formats a message of a transcript as a line: when, who, the text, calls by name, results. */
function transcriptLine({ role, createdAt, parts: shown }: Shown): string {
  // The gateway's parts are those of the contract, whose schema the API keeps loose.
  const parts = shown as TranscriptMessage['parts'];
  const calls = parts.flatMap((part) => (part.type === 'tool_call' ? [`[${part.data.name}]`] : []));
  const results = parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content] : []));
  return `${localSecond(createdAt)}  ${role}: ${[textOf(parts), ...calls, ...results].join(' ').trim()}`;
}
