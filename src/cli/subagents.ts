import type { z } from 'zod';
import { localTime } from '#channel-kit/time-text.ts';
import * as subagents from '../operations/subagents.ts';
import { callOperation } from './call-operation.ts';
import { durationOf } from './child-lines.ts';
import type { CommandOutput } from './print.ts';
import { transcriptLine } from './transcript-line.ts';

/** Lists the newest sub-agents. */
export async function listSubagents(): Promise<CommandOutput> {
  const { subagents: children } = await callOperation(subagents.listSubagents, {});
  return { result: children, lines: children.length === 0 ? ['No sub-agents.'] : children.map(lineOf) };
}

/** Shows a sub-agent with its task and result; `id`: its id or the beginning of it. */
export async function showSubagent(id: string): Promise<CommandOutput> {
  const child = await callOperation(subagents.showSubagent, { id });
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

function lineOf(child: z.output<typeof subagents.showSubagent.answer>): string {
  const { id, depth, state, status, usage, label, task } = child;
  const tokens = usage.promptTokens + usage.completionTokens;
  const facts = [`depth ${depth}`, status ?? state, durationOf(child, Date.now()), `tokens: ${tokens}`];
  const name = (label ?? task).replace(/\s+/g, ' ').slice(0, 60).toWellFormed();
  return `${id}  ${facts.join(', ')}, cost $${(usage.cost / 1e6).toFixed(4)}  “${name}”`;
}
