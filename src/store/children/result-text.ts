import { fitBytes } from '#channel-kit/clean-text.ts';
import { type MessagePart, textOf } from '#contracts/message.ts';

/** Longest result of a sub-agent, bytes of UTF-8, its note about the cut included. */
export const maxResultBytes = 100 * 1024;

type Said = { readonly role: string; readonly parts: readonly MessagePart[] };

/**
 * A sub-agent's result: the last text it wrote that says something, else its last tool result, else ''.
 * `messages`: its session's, oldest first.
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

/** Results of the tools for sub-agents say nothing of the task, unless one has found something. */
function isBookkeeping({ name, content }: { readonly name: string; readonly content: string }): boolean {
  return name === 'subagents' || (name === 'sessions_spawn' && content.trimStart().startsWith('{'));
}

/** A chosen silence has nothing for the parent to read. */
function isSilence(text: string): boolean {
  return /^[^\p{L}\p{N}]*(?:NO_REPLY|ANNOUNCE_SKIP)[^\p{L}\p{N}]*$/iu.test(text);
}
