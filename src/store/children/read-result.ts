/** Results of sub-agents and runs: their last words, never judged by a model. */

import { sql } from 'kysely';
import { fitBytes } from '#channel-kit/clean-text.ts';
import { type MessagePart, textOf } from '#contracts/message.ts';
import type { Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';

/** How many of the last messages are searched for a result. */
const lastMessages = 20;

/** Reads the child's last visible text, else its last tool result; empty when there is neither. */
export async function readResult(tx: Tx, sessionId: string): Promise<string> {
  const rows = await tx.db
    .selectFrom('transcript')
    .select(['role', 'parts'])
    .where('sessionId', '=', sessionId)
    .where('isFinished', '=', 1)
    .where('role', 'in', ['assistant', 'tool'])
    .orderBy('position', 'desc')
    .limit(lastMessages)
    .execute();
  return resultTextOf(rows.reverse().map(({ role, parts }) => ({ role, parts: json.parts(parts) })));
}

/** Reads the last visible text of a run, else its last tool result; empty when there is neither. */
export async function readRunText(tx: Tx, runId: string): Promise<string> {
  const rows = await messagesOfRun.all(tx, { runId });
  return resultTextOf(rows.toReversed().map(({ role, parts }) => ({ role, parts: json.parts(parts) })));
}

const messagesOfRun = prepared((db, of: QueryParams<{ runId: string }>) =>
  db
    .selectFrom('runs')
    .innerJoin('transcript', (join) =>
      join.onRef('transcript.sessionId', '=', 'runs.sessionId').onRef('transcript.runId', '=', 'runs.id'),
    )
    .select(['transcript.role', 'transcript.parts'])
    .where('runs.id', '=', of.runId)
    .where('transcript.isFinished', '=', 1)
    .where('transcript.role', 'in', ['assistant', 'tool'])
    .orderBy('transcript.position', 'desc')
    .limit(sql.lit(lastMessages)),
);

/** Longest result of a sub-agent, bytes of UTF-8, including the note that it was cut. */
export const maxResultBytes = 100 * 1024;

type Said = { readonly role: string; readonly parts: readonly MessagePart[] };

/**
 * Returns a sub-agent's result: its last meaningful text, else its last tool result, else ''. `messages`: its
 * session's, oldest first.
 */
export function resultTextOf(messages: readonly Said[]): string {
  const texts = messages.flatMap(({ role, parts }) => (role === 'assistant' ? [textOf(parts).trim()] : []));
  const results = messages.flatMap(({ parts }) =>
    parts.flatMap((part) =>
      part.type === 'tool_result' && !isBookkeeping(part.data) ? [part.data.content.trim()] : [],
    ),
  );
  const saysSomething = (text: string) => text !== '' && !isSilence(text);
  return fitBytes(
    texts.findLast(saysSomething) ?? results.findLast((text) => text !== '') ?? '',
    maxResultBytes,
  );
}

/** Says whether a tool result is only about managing sub-agents and tasks, and not about what was asked. */
function isBookkeeping({ name, content }: { readonly name: string; readonly content: string }): boolean {
  if (name === 'sessions_spawn') return content.trimStart().startsWith('{');
  return name === 'subagents' || name === 'delegate' || name === 'tasks';
}

/** Says whether the text is a chosen silence, which contains nothing for the parent. */
function isSilence(text: string): boolean {
  return /^[^\p{L}\p{N}]*(?:NO_REPLY|ANNOUNCE_SKIP)[^\p{L}\p{N}]*$/iu.test(text);
}
