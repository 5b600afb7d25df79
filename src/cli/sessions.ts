import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import { stripText } from '../logging/redaction.ts';
import { timeText } from '../logging/time-text.ts';
import {
  findSession,
  type PurposeUsage,
  readSessionReports,
  type SessionReport,
} from '../store/reads/read-session-reports.ts';
import type { ExitCode } from './exit-code.ts';
import { printResult } from './print.ts';
import { withStore } from './with-store.ts';

/** Conversations that a list shows. */
const listed = 100;

export async function runSessionsList({ asJson }: { readonly asJson: boolean }): Promise<ExitCode> {
  const sessions = await withStore((store) => store.read(readSessionReports, { limit: listed }));
  const lines = sessions.length === 0 ? ['No conversations yet.'] : sessions.map(lineOf);
  printResult({ asJson, result: sessions, lines });
  return 0;
}

type ShowOptions = { readonly id: string; readonly asJson: boolean };

/** `id`: of the session or the beginning of it, or a session key. */
export async function runSessionsShow({ id, asJson }: ShowOptions): Promise<ExitCode> {
  const found = await withStore((store) => store.read(findSession, { idOrKey: id }));
  if (found.kind !== 'found') {
    const why = found.kind === 'none' ? "isn't a conversation" : 'matches several conversations';
    throw new ParleyError('invalid_input', `${stripText(id)} ${why}. See: ${parleyCommand} sessions list`);
  }
  const { session } = found;
  const lines = [
    lineOf(session),
    `  ${session.key}`,
    `  from ${timeText(session.createdAt)} to ${timeText(session.updatedAt)}`,
    ...session.usage.map(usageLine),
    ...(session.summary === undefined ? [] : [`  summary: ${session.summary}`]),
  ];
  printResult({ asJson, result: session, lines });
  return 0;
}

function lineOf(session: SessionReport): string {
  const { id, title, key, agentId, messageCount, tokens, cost, isSummarised, endedAt } = session;
  const facts = [
    `agent ${agentId}`,
    `messages: ${messageCount}`,
    `tokens: ${tokens.prompt + tokens.completion}`,
    `cost ${dollars(cost)}`,
    ...(isSummarised ? ['summarised'] : []),
    ...(endedAt === undefined ? [] : ['ended']),
  ];
  return `${id}  ${title === undefined ? key : `“${title}”`}  ${facts.join(', ')}`;
}

function usageLine({ purpose, calls, promptTokens, completionTokens, cost }: PurposeUsage): string {
  return `  ${purpose}: calls ${calls}, tokens ${promptTokens} in, ${completionTokens} out, cost ${dollars(cost)}`;
}

function dollars(cost: number): string {
  return `$${(cost / 1e6).toFixed(4)}`;
}
