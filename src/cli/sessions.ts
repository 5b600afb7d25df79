import { parleyCommand } from '#channel-kit/own-commands.ts';
import { localTime } from '#channel-kit/time-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { TranscriptMessage } from '#contracts/message.ts';
import { stripText } from '../logging/redaction.ts';
import type { Store } from '../store/base/command.ts';
import {
  findSession,
  type PurposeUsage,
  readSessionReports,
  type SessionDetails,
  type SessionReport,
} from '../store/reads/read-sessions.ts';
import { readTranscriptPage } from '../store/reads/read-transcript.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';
import { transcriptLine } from './transcript-line.ts';
import { withStore } from './with-store.ts';

/** How many conversations a list shows. */
const listed = 100;
/** How many messages one read of an export returns. */
const pageSize = 200;

/** Lists the most recently used conversations. */
export async function listSessions(): Promise<CommandOutput> {
  const sessions = await withStore(
    (store) => store.read(readSessionReports, { limit: listed }),
    configForReading(),
  );
  const lines = sessions.length === 0 ? ['No conversations yet.'] : sessions.map(lineOf);
  return { result: sessions, lines };
}

/** Shows a conversation. `id`: the session's id or the beginning of it, or a session key. */
export async function showSession(id: string): Promise<CommandOutput> {
  const session = await withStore((store) => findOne(store, id), configForReading());
  return { result: session, lines: describe(session) };
}

/** Shows a conversation with every message, including those that a summary replaces. */
export async function exportSession(id: string): Promise<CommandOutput> {
  const { session, messages } = await withStore(async (store) => {
    const found = await findOne(store, id);
    return { session: found, messages: await readWhole(store, found.id) };
  }, configForReading());
  const lines = [...describe(session), ...messages.map(transcriptLine)];
  return { result: { ...session, messages }, lines };
}

async function readWhole(store: Store, sessionId: string): Promise<readonly TranscriptMessage[]> {
  const pages: (readonly TranscriptMessage[])[] = [];
  for (let before: number | undefined; ; ) {
    const from = before === undefined ? {} : { before };
    const page = await store.read(readTranscriptPage, { sessionId, limit: pageSize, ...from });
    pages.unshift(page);
    before = page[0]?.position;
    if (page.length < pageSize) return pages.flat();
  }
}

/** Returns the session; throws `invalid_input` if none or several match. */
async function findOne(store: Store, id: string): Promise<SessionDetails> {
  const found = await store.read(findSession, { idOrKey: id });
  if (found.kind === 'found') return found.session;
  const why = found.kind === 'none' ? "isn't a conversation" : 'matches several conversations';
  throw new ParleyError('invalid_input', `${stripText(id)} ${why}. See: ${parleyCommand} sessions list`);
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
  const { id, title, key, agentId, messageCount, tokens, cost, isSummarised, endedAt } = session;
  const facts = [
    ...(session.lastSender === undefined ? [] : [describeSender(session.lastSender)]),
    `agent ${agentId}`,
    `messages: ${messageCount}`,
    `tokens: ${tokens.prompt + tokens.completion}`,
    `cost ${dollars(cost)}`,
    ...(isSummarised ? ['summarised'] : []),
    ...(endedAt === undefined ? [] : ['ended']),
  ];
  return `${id}  ${localTime(session.updatedAt)}  ${title === undefined ? key : `“${title}”`}  ${facts.join(', ')}`;
}

/** Returns `Ann on telegram (telegram:301)`; a name can be anything, so the reference is always there. */
function describeSender({ network, ref, name }: NonNullable<SessionReport['lastSender']>): string {
  const shown = cleanLabel(name);
  return shown === '' ? ref : `${shown} on ${network} (${ref})`;
}

function usageLine({ purpose, calls, promptTokens, completionTokens, cost }: PurposeUsage): string {
  return `  ${purpose}: calls ${calls}, tokens ${promptTokens} in, ${completionTokens} out, cost ${dollars(cost)}`;
}

function dollars(cost: number): string {
  return `$${(cost / 1e6).toFixed(4)}`;
}
