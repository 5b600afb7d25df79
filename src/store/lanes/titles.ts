/**
 * Titles of sessions. A session's first message begins one more run, which names the session, in its own lane and
 * session. Nothing awaits that run, and a failure isn't reported: the session then has no title.
 */

import { type AgentMessage, textOf } from '#contracts/message.ts';
import { cleanUntrusted } from '../../texts/untrusted-text.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { noEffects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { newRowId } from '../base/keys.ts';
import { changeRow, findRow, plus, sumOf } from '../base/row-access.ts';
import { innerContent, isChildLane } from '../children/child.ts';
import { enqueueItem } from '../items/enqueue-item.ts';
import type { WaitingRow } from '../items/waiting-items.ts';
import type { Lane } from '../rows/lane.ts';

/** Longest title, characters. */
const longestTitle = 80;
/** How much of a conversation's opening is used to name it, UTF-16 units. */
const longestOpening = 2_000;

/** Returns the key of the lane in which a session is named. Keys of conversations have more segments. */
export function titleLaneOf(sessionId: string): string {
  return `title:${sessionId}`;
}

/** Returns the id of the session in which a session is named. */
export function titleSessionOf(sessionId: string): string {
  return `title-${sessionId}`;
}

/** Returns the session that is named in the lane; undefined for every other lane. */
export function sessionNamedIn(laneKey: string): string | undefined {
  return /^title:([^:]+)$/.exec(laneKey)?.[1];
}

/**
 * Enqueues a run that names the session from these first messages. Sub-agents and titles get none. The source key
 * limits it to one per session. The sweep finds it, since nothing awaits it.
 */
export async function enqueueTitle(
  tx: StepTx,
  input: {
    readonly lane: Lane;
    readonly rows: readonly WaitingRow[];
    /** The messages made from the rows. */
    readonly messages: readonly AgentMessage[];
  },
): Promise<void> {
  const { lane, rows, messages } = input;
  if (lane.class === 'background' || isChildLane(lane.key)) return;
  const text = openingOf(rows, messages);
  if (text === '') return;
  const { sessionId } = lane;
  const titleSession = titleSessionOf(sessionId);
  const key = titleLaneOf(sessionId);
  await enqueueItem(
    tx,
    {
      ...{ key, class: 'background', agentId: lane.agentId, chatKind: 'dm', newSessionId: titleSession },
      settings: { mode: 'followup', debounceMs: 0, quietMs: 0, cap: 1, drop: 'new' },
    },
    {
      ...{ id: newRowId(), source: 'job', sourceKey: key, reach: 'alone', target: 'record' },
      // It has no tools, so it needs no rights.
      authority: 'guest',
      content: innerContent(tx, text),
    },
    noEffects(),
  );
  await changeRow(tx, 'sessions', titleSession, {
    parentSessionId: sessionId,
    ancestors: JSON.stringify([sessionId]),
  });
}

/** Returns the text that people wrote, or a file's name if the message is only a file. */
function openingOf(rows: readonly WaitingRow[], messages: readonly AgentMessage[]): string {
  const written = rows.map(({ content }) => content.text).join('\n');
  const shown = messages.flatMap(({ role, parts }) => (role === 'user' ? [textOf(parts)] : [])).join('\n');
  const text = written.trim() === '' ? shown : written;
  return text.trim().slice(0, longestOpening).toWellFormed();
}

/** Returns the run whose budgets pay for the title's calls: the one that took the session's first message. */
export async function openingRunOf(tx: Tx, laneKey: string): Promise<string | undefined> {
  const sessionId = sessionNamedIn(laneKey);
  if (sessionId === undefined) return undefined;
  const first = await tx.db
    .selectFrom('transcript')
    .select('runId')
    .where('sessionId', '=', sessionId)
    .where('role', '=', 'user')
    .orderBy('position')
    .limit(1)
    .executeTakeFirst();
  return first?.runId ?? undefined;
}

/**
 * Ends a run that names a session: the session gets the run's cost and its title, if the run found one. Call it before
 * the run is finished, so that a repeat changes nothing; runs of other lanes are left alone.
 */
export async function endTitleRun(
  tx: Tx,
  lane: Lane,
  { runId, endReason }: { readonly runId: string; readonly endReason: string },
): Promise<void> {
  const id = sessionNamedIn(lane.key);
  if (id === undefined) return;
  const run = await findRow(tx, 'runs', runId, ['state']);
  if (run?.state === 'finished') return;
  const title = endReason === 'natural' ? await readTitle(tx, lane.sessionId) : undefined;
  const { cost } = await tx.db
    .selectFrom('modelCalls')
    .select(sumOf('cost'))
    .where('runId', '=', runId)
    .executeTakeFirstOrThrow();
  await changeRow(tx, 'sessions', id, { title, cost: plus(cost) });
}

async function readTitle(tx: Tx, sessionId: string): Promise<string | undefined> {
  const answer = await tx.db
    .selectFrom('transcript')
    .select('parts')
    .where('sessionId', '=', sessionId)
    .where('role', '=', 'assistant')
    .orderBy('position', 'desc')
    .executeTakeFirst();
  return answer && titleOf(textOf(json.parts(answer.parts)));
}

/** Returns one line of the model's text without what models put around a title; undefined if nothing is left. */
export function titleOf(text: string): string | undefined {
  const line = cleanUntrusted(text).trim().split('\n', 1)[0] ?? '';
  const bare = line
    .replace(/^(?:#+\s|\**title:)/i, '')
    .replace(/^[\s"'“”„‘’«»*_`]+|[\s"'“”„‘’«»*_`.]+$/g, '')
    .replace(/\s+/g, ' ');
  const characters = [...bare];
  if (characters.length > longestTitle) return `${characters.slice(0, longestTitle - 1).join('')}…`;
  return bare === '' ? undefined : bare;
}
