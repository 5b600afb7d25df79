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
    parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content.trim()] : [])),
  );
  const saysSomething = (text: string) => text !== '' && !isSilence(text);
  return fit(texts.findLast(saysSomething) ?? results.findLast((text) => text !== '') ?? '');
}

/** A chosen silence has nothing for the parent to read. */
function isSilence(text: string): boolean {
  return /^[^\p{L}\p{N}]*(?:NO_REPLY|ANNOUNCE_SKIP)[^\p{L}\p{N}]*$/iu.test(text);
}

/** Cut at a whole character, with a note; clean, so that every database takes it. */
function fit(text: string): string {
  const clean = text.toWellFormed().replaceAll('\u0000', '\ufffd');
  const bytes = Buffer.byteLength(clean);
  if (bytes <= maxResultBytes) return clean;
  const note = `\n[cut here: the whole result has ${bytes} bytes]`;
  const room = new Uint8Array(maxResultBytes - Buffer.byteLength(note));
  return clean.slice(0, new TextEncoder().encodeInto(clean, room).read) + note;
}
