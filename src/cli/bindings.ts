import { timeText } from '#channel-kit/time-text.ts';
import { stripText } from '../logging/redaction.ts';
import { endBinding, listBindings } from '../operations/bindings.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';

/** Lists the agents that were chosen in chat. */
export async function showBindings(): Promise<CommandOutput> {
  const { bindings } = await callOperation(listBindings, {});
  const lines = bindings.map(({ conversation, thread, agent, setBy, setAt }) =>
    stripText(
      `${conversation}${thread === undefined ? '' : ` ${thread}`}  ${agent}  ${timeText(setAt)}, by ${setBy}`,
    ),
  );
  return { result: bindings, lines: lines.length === 0 ? ['No agents were chosen in chat.'] : lines };
}

/** Takes back the agent that was chosen for a group, or for one of its topics. */
export async function unbind(conversation: string, thread?: string): Promise<CommandOutput> {
  const result = await callOperation(endBinding, { conversation, ...(thread !== undefined && { thread }) });
  return { result, lines: ['The configuration decides there again, from the next message on.'] };
}
