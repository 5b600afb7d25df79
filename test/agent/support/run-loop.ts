import { expect } from 'vitest';
import type { AgentEvent } from '#contracts/agent-event.ts';
import type { AgentMessage } from '#contracts/message.ts';
import type { LlmMessage } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';
import { type AgentEvents, agentLoop } from '../../../src/agent/loop.ts';
import { aConfig, aContext, type ConfigChanges, userSays } from './builders.ts';
import { grammarErrors } from './event-grammar.ts';
import { callsTools, type ScriptedCall, says, scriptedModel } from './scripted-model.ts';

export const noSignal = (): AbortSignal => new AbortController().signal;
export const hello = userSays('p1', 'hello');

export type Played = { readonly events: readonly AgentEvent[]; readonly messages: readonly AgentMessage[] };

/** Consumes a run to its end; `onEvent` is awaited before the next event is requested. */
export async function play(
  run: AgentEvents,
  onEvent: (event: AgentEvent) => void | Promise<void> = () => undefined,
): Promise<Played> {
  const events: AgentEvent[] = [];
  for (;;) {
    const step = await run.next();
    if (step.done === true) return { events, messages: step.value };
    events.push(step.value);
    await onEvent(step.value);
  }
}

/** Runs one batch of calls and the model's answer to it. */
export async function playBatch(
  tools: readonly Tool[],
  calls: readonly ScriptedCall[],
  { signal = noSignal(), ...changes }: ConfigChanges & { readonly signal?: AbortSignal } = {},
) {
  const model = scriptedModel(callsTools(...calls), says('done'));
  const played = await play(agentLoop([hello], aContext(tools), aConfig({ ...changes, model }), signal));
  expect(grammarErrors(played.events)).toEqual([]);
  return { ...played, model, results: resultsOf(played.messages) };
}

export function only<Type extends AgentEvent['type']>(
  events: readonly AgentEvent[],
  type: Type,
): readonly Extract<AgentEvent, { readonly type: Type }>[] {
  return events.filter((event): event is Extract<AgentEvent, { readonly type: Type }> => event.type === type);
}

export function endOf(events: readonly AgentEvent[]) {
  const last = events.at(-1);
  if (last?.type !== 'agent_end') throw new Error(`the last event is ${last?.type}`);
  return last;
}

/** Returns `id: content` of every tool result, in transcript order. */
export function resultsOf(messages: readonly AgentMessage[]): readonly string[] {
  return messages.flatMap(({ parts }) =>
    parts.flatMap((part) =>
      part.type === 'tool_result' ? [`${part.data.tool_call_id}: ${part.data.content}`] : [],
    ),
  );
}

/** Returns all text of a request's last user message. */
export function lastUserText(messages: readonly LlmMessage[] | undefined): string {
  const last = messages?.at(-1);
  if (last?.role !== 'user') return '';
  return last.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
}
