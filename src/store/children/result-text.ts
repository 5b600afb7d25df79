import { fitBytes } from '#channel-kit/clean-text.ts';
import { type MessagePart, textOf } from '#contracts/message.ts';

/** Longest result of a sub-agent, bytes of UTF-8, including the note that it was cut. */
export const maxResultBytes = 100 * 1024;

type Said = { readonly role: string; readonly parts: readonly MessagePart[] };

/**
 * Returns a sub-agent's result: its last meaningful text, else its last tool result, else ''. `messages`: its
 * session's, oldest first.
 */
export function resultTextOf(messages: readonly Said[]): string {
  const texts = messages.flatMap(({ role, parts }) => (role === 'assistant' ? [textOf(parts).trim()] : []));
  const results = messages.flatMap(({ parts }) =>
    parts.flatMap((part) =>
      part.type === 'tool_result' && !isBookkeeping(part.data) ? [part.data.content.trim()] : [],
    ),
  );
  const saysSomething = (text: string) => text !== '' && !isSilence(text);
  return fitBytes(
    texts.findLast(saysSomething) ?? results.findLast((text) => text !== '') ?? '',
    maxResultBytes,
  );
}

/** Says whether a tool result is only about managing sub-agents, and not about the task. */
function isBookkeeping({ name, content }: { readonly name: string; readonly content: string }): boolean {
  return name === 'subagents' || (name === 'sessions_spawn' && content.trimStart().startsWith('{'));
}

/** Says whether the text is a chosen silence, which contains nothing for the parent. */
function isSilence(text: string): boolean {
  return /^[^\p{L}\p{N}]*(?:NO_REPLY|ANNOUNCE_SKIP)[^\p{L}\p{N}]*$/iu.test(text);
}
