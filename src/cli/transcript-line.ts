import { localSecond } from '#channel-kit/time-text.ts';
import { type TranscriptMessage, textOf } from '#contracts/message.ts';

/** Formats a message of a transcript as a line: when, who, the text, calls by name, results. */
export function transcriptLine({ role, createdAt, parts }: TranscriptMessage): string {
  const calls = parts.flatMap((part) => (part.type === 'tool_call' ? [`[${part.data.name}]`] : []));
  const results = parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content] : []));
  return `${localSecond(createdAt)}  ${role}: ${[textOf(parts), ...calls, ...results].join(' ').trim()}`;
}
