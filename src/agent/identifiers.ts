/** URLs, paths and ids: names that a summary must not lose because they can't be reconstructed. */
import { takingTurns } from '#channel-kit/take-turns.ts';
import { type AgentMessage, textOf } from '#contracts/message.ts';

const [shortest, longest] = [5, 300];

/** Finds the identifiers in a text, each once, in order. */
export function identifiersIn(text: string): readonly string[] {
  const found = new Set<string>();
  for (const word of text.split(/[\s<>"'`()[\]{}|,;]+/)) {
    const name = trimmed(word);
    if (name.length >= shortest && name.length <= longest && isIdentifier(name)) found.add(name);
  }
  return [...found];
}

/**
 * Finds the identifiers in the messages and the earlier summary that the new summary lacks, newest first and limited to
 * `units` UTF-16 units: first those of the conversation itself, then those passed to tools, then those in results.
 * It works in slices, since a history may be megabytes long.
 */
export async function lostIdentifiers(
  messages: readonly AgentMessage[],
  { earlier, summary, units }: { readonly earlier: string; readonly summary: string; readonly units: number },
): Promise<readonly string[]> {
  const newest = messages.toReversed();
  const sources = [
    ...newest.map(({ parts }) => textOf(parts)),
    earlier,
    ...newest.map(({ parts }) => detailOf(parts, 'tool_call')),
    ...newest.map(({ parts }) => detailOf(parts, 'tool_result')),
  ];
  const kept = new Set(identifiersIn(summary));
  const lost: string[] = [];
  let room = units;
  const turn = takingTurns();
  for (const text of sources) {
    await turn();
    for (const name of identifiersIn(text)) {
      if (kept.has(name)) continue;
      room -= name.length + lineLength;
      if (room < 0) return lost;
      kept.add(name);
      lost.push(name);
    }
  }
  return lost;
}

/** Characters that the list adds around each name. */
const lineLength = 3;

function detailOf(parts: AgentMessage['parts'], type: 'tool_call' | 'tool_result'): string {
  return parts
    .map((part) => {
      if (part.type !== type) return '';
      return part.type === 'tool_call' ? part.data.input : part.data.content;
    })
    .join(' ');
}

/** Strips the punctuation of the surrounding sentence. */
function trimmed(word: string): string {
  let [start, end] = [0, word.length];
  while (start < end && '*_.,:!?'.includes(word.charAt(start))) start += 1;
  while (end > start && '*_.,:!?'.includes(word.charAt(end - 1))) end -= 1;
  return word.slice(start, end);
}

function isIdentifier(name: string): boolean {
  if (/^[a-z][a-z0-9+.-]{1,20}:\/\/./i.test(name)) return true;
  if (/^[\w.~@+%=-]*(?:\/[\w.@+%=-]+)+\/?$/.test(name)) return isPath(name);
  return (
    /^[\w#@.+:-]+$/.test(name) && /\d/.test(name) && (/[a-z]/i.test(name) || /(?:\d[^\d]?){6}/.test(name))
  );
}

/** Says whether a slashed name is a path: `/etc/or`, `a/b/c` and `v1/or` are, `and/or` isn't. */
function isPath(name: string): boolean {
  return name.startsWith('/') || name.startsWith('~') || /\d|\.|\/.*\//.test(name);
}
