import type { AgentMessage } from '#contracts/message.ts';
import type { StoredResult } from '../store/rows/call-states.ts';

/** Converts a result message into its stored form; without a `tool_result` part it counts as failed. */
export function storedResult({ parts }: AgentMessage): StoredResult {
  const result = parts.find((part) => part.type === 'tool_result');
  return { callId: result?.data.tool_call_id ?? '', isError: result?.data.is_error ?? true, parts };
}
