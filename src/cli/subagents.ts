import { parleyCommand } from '#channel-kit/own-commands.ts';
import { localTime } from '#channel-kit/time-text.ts';
import type { ChildRecord } from '#contracts/child.ts';
import { ParleyError } from '#contracts/errors.ts';
import { stripText } from '../logging/redaction.ts';
import type { Store } from '../store/base/command.ts';
import { newRowId } from '../store/base/keys.ts';
import { findChild, readChildren } from '../store/children/child.ts';
import { type SteerResult, steerChild, stopChild } from '../store/children/operate-child.ts';
import { readTranscriptPage } from '../store/reads/read-transcript.ts';
import { durationOf } from './child-lines.ts';
import type { CommandOutput } from './print.ts';
import { configForReading } from './readable-config.ts';
import { transcriptLine } from './transcript-line.ts';
import { withStore } from './with-store.ts';

/** How many of the newest sub-agents the commands know. */
const known = 500;
/** How many messages `log` prints. */
const logged = 200;

/** Lists the newest sub-agents. */
export async function listSubagents(): Promise<CommandOutput> {
  const children = await withStore((store) => store.read(readChildren, { limit: known }), configForReading());
  const lines = children.length === 0 ? ['No sub-agents.'] : children.map(lineOf);
  return { result: children, lines };
}

/** Shows a sub-agent with its task and result; `id`: its id or the beginning of it. */
export async function showSubagent(id: string): Promise<CommandOutput> {
  const child = await withStore(async (store) => {
    const found = await findOne(store, id);
    // Lists don't include results.
    return (await store.read(findChild, { childId: found.id })) ?? found;
  }, configForReading());
  const lines = [
    lineOf(child),
    `  agent ${child.agentId}, parent session ${child.parentSessionId}, tree ${child.treeId}`,
    `  spawned ${localTime(child.createdAt)}, lane ${child.laneKey}`,
    `  task: ${child.task}`,
    ...(child.result === undefined ? [] : [`  result (told: ${child.told}): ${child.result}`]),
  ];
  return { result: child, lines };
}

/** Shows what a sub-agent has read and said. */
export async function showSubagentLog(id: string): Promise<CommandOutput> {
  const messages = await withStore(async (store) => {
    const { sessionId } = await findOne(store, id);
    return store.read(readTranscriptPage, { sessionId, limit: logged });
  }, configForReading());
  const lines = messages.map(transcriptLine);
  return { result: messages, lines: lines.length === 0 ? ['Nothing yet.'] : lines };
}

/** Sends a sub-agent a message, which has the sub-agent's own authority, not the operator's. */
export async function steerSubagent(id: string, text: string): Promise<CommandOutput> {
  if (text.trim() === '') throw new ParleyError('invalid_input', 'The message is empty.');
  const { childId, kind } = await withStore(async (store) => {
    const { id: childId } = await findOne(store, id);
    const steer = { childId, id: newRowId(), text, authority: 'owner', by: 'console' } as const;
    return { childId, ...(await store.write(steerChild, steer)) };
  });
  requireLive(id, kind);
  return { result: { id: childId }, lines: ['It will read the message before its next step.'] };
}

/** Stops a sub-agent and its descendants. A running gateway notices within a second. */
export async function stopSubagent(id: string): Promise<CommandOutput> {
  const { childId, kind, stopped } = await withStore(async (store) => {
    const { id: childId } = await findOne(store, id);
    return { childId, ...(await store.write(stopChild, { childId })) };
  });
  requireLive(id, kind);
  const what = stopped === 1 ? '1 sub-agent' : `${stopped} sub-agents`;
  return { result: { id: childId, stopped }, lines: [`Told ${what} to stop.`] };
}

function requireLive(id: string, kind: SteerResult['kind']): void {
  if (kind === 'done') return;
  throw new ParleyError(
    'invalid_input',
    `${id} has already ended. See: ${parleyCommand} subagents info ${id}`,
  );
}

/** Finds a sub-agent by its id or the beginning of it. Throws `invalid_input` if none or several match. */
async function findOne(store: Store, id: string): Promise<ChildRecord> {
  const children = await store.read(readChildren, { limit: known });
  const [child, ...others] = children.filter((one) => one.id.startsWith(id.toLowerCase()));
  if (child !== undefined && others.length === 0) return child;
  const why = child === undefined ? "isn't a sub-agent" : 'matches several sub-agents';
  throw new ParleyError('invalid_input', `${stripText(id)} ${why}. See: ${parleyCommand} subagents list`);
}

function lineOf(child: ChildRecord): string {
  const { id, depth, state, status, usage, label, task } = child;
  const tokens = usage.promptTokens + usage.completionTokens;
  const facts = [`depth ${depth}`, status ?? state, durationOf(child, Date.now()), `tokens: ${tokens}`];
  const name = (label ?? task).replace(/\s+/g, ' ').slice(0, 60).toWellFormed();
  return `${id}  ${facts.join(', ')}, cost $${(usage.cost / 1e6).toFixed(4)}  “${name}”`;
}
