/**
 * The last resort for a context that exceeds the model's window and can't be summarised: its oldest messages are
 * omitted from the request, though never from the store. The summary stays, and no call is separated from its results.
 */
import { transcriptId } from '#contracts/ids.ts';
import type { AgentMessage } from '#contracts/message.ts';
import { estimateTokens, messageTokens } from './context-size.ts';

/** Sizes in tokens. */
export type FitTerms = {
  readonly window: number;
  /**
   * Size of the context as the run knows it, based on the last call's own count if there is one. The estimate alone
   * errs on the safe side and would cut requests long before a summary is due.
   */
  readonly tokens: number;
};

/** Returns the same messages if they fit, else the summary and the newest messages, starting with a person's. */
export function fitContext(
  messages: readonly AgentMessage[],
  { window, tokens }: FitTerms,
): readonly AgentMessage[] {
  if (tokens <= window) return messages;
  const summary = messages.slice(0, messages[0]?.isSummary ? 1 : 0);
  let left = window - estimateTokens(summary);
  let start = messages.length;
  while (start > summary.length) {
    const message = messages[start - 1];
    left -= message ? messageTokens(message) : 0;
    if (left < 0) break;
    start -= 1;
  }
  if (start === summary.length) return messages;
  const first = messages.findIndex((message, index) => index >= start && message.role === 'user');
  // Not even the newest turn fits: it is sent in full, and the provider decides.
  const from = first === -1 ? messages.findLastIndex((message) => message.role === 'user') : first;
  if (from <= summary.length) return messages;
  return [...summary, leftOut(from - summary.length, messages[from]), ...messages.slice(from)];
}

function leftOut(count: number, next: AgentMessage | undefined): AgentMessage {
  const text = `${count} earlier messages of this conversation don't fit here; sessions_history shows them.`;
  return {
    id: transcriptId('left-out'),
    role: 'system',
    parts: [{ type: 'text', data: { text } }],
    createdAt: next?.createdAt ?? 0,
  };
}
