/** What a scripted model reads and says when sub-agents are at work. */
import type { Turn } from '../platforms/anthropic/turn.ts';
import { blocksOf, type WireBlock, type WireBody } from '../platforms/anthropic/wire.ts';
import { readStore } from './conservation.ts';

/** Recognizes a sub-agent by its prompt, which says what it is. */
export function isSubagent({ system }: WireBody): boolean {
  return JSON.stringify(system ?? '').includes('You are a sub-agent');
}

/** Returns which of the named tasks the request's sub-agent has; undefined if none. */
export function taskOf<T extends string>(body: WireBody, tasks: readonly T[]): T | undefined {
  if (!isSubagent(body)) return undefined;
  const said = body.messages.filter(({ role }) => role === 'user').flatMap(blocksOf);
  return tasks.find((task) => said.some(({ type, text }) => type === 'text' && text?.trim() === task));
}

export function spawns(...inputs: readonly Record<string, unknown>[]): Turn {
  return { toolCalls: inputs.map((input) => ({ name: 'sessions_spawn', input })) };
}

export function hasResults(body: WireBody): boolean {
  return body.messages.flatMap(blocksOf).some(({ type }) => type === 'tool_result');
}

/** Says whether the request contains the text, as words or in a tool's result. */
export function shows(body: WireBody, text: string): boolean {
  return body.messages
    .flatMap(blocksOf)
    .some((block) => [block.text, resultOf(block)].some((shown) => shown?.includes(text)));
}

function resultOf({ content }: WireBlock): string | undefined {
  return typeof content === 'string' ? content : content?.map(({ text }) => text ?? '').join('');
}

/** Returns how every sub-agent ended, by its label. */
export function subagentEnds(dataDir: string) {
  return readStore(dataDir, 'select label, depth, state, status, told from children order by label');
}
