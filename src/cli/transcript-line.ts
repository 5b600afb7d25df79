import { localSecond } from '#channel-kit/time-text.ts';
import { type TranscriptMessage, textOf } from '#contracts/message.ts';

type Shown = Pick<TranscriptMessage, 'createdAt' | 'role'> & {
  readonly parts: readonly { readonly type: string; readonly data: object }[];
};

/** Formats a message of a transcript as a line: when, who, the text, calls by name, results. */
export function transcriptLine({ role, createdAt, parts: shown }: Shown): string {
  // The gateway's parts are those of the contract, whose schema the API keeps loose.
  const parts = shown as TranscriptMessage['parts'];
  const calls = parts.flatMap((part) => (part.type === 'tool_call' ? [`[${part.data.name}]`] : []));
  const results = parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content] : []));
  return `${localSecond(createdAt)}  ${role}: ${[textOf(parts), ...calls, ...results].join(' ').trim()}`;
}
