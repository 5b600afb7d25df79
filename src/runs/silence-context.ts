import { type AgentMessage, textOf } from '#contracts/message.ts';
import type { SilenceContext } from '../replies/silence-grammar.ts';
import type { Store } from '../store/base/command.ts';
import { readAnnounced } from '../store/children/read-announced.ts';

/**
 * Decides which words of silence count in an answer, by what its run has taken. Reads only if the text contains one.
 */
export async function silenceContextOf(
  store: Store,
  { runId }: { readonly runId: string },
  answer: AgentMessage,
): Promise<SilenceContext> {
  if (!/ANNOUNCE_SKIP/i.test(textOf(answer.parts))) return 'chat';
  return (await store.read(readAnnounced, { runId })) ? 'announce' : 'chat';
}
