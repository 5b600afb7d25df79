import type { z } from 'zod';
import { localTime } from '#channel-kit/time-text.ts';
import * as sessions from '../operations/sessions.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';
import { callOperation, withOperations } from './call-operation.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';
import { transcriptLine } from './transcript-line.ts';

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
