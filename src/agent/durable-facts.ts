/**
 * The memory of a conversation: facts that the summarising model lists along with its summary. They are repeated word
 * for word in every later summary of the session, and stored nowhere else. A fact is removed only when that model names
 * its number.
 */
import { cleanText } from '#channel-kit/clean-text.ts';

/** Longest fact, UTF-16 units. */
const longestFact = 300;
/** Characters that the list adds around each fact. */
const lineUnits = 3;

/** Changes to the list; facts are numbered from 1. */
export type FactChanges = { readonly added: readonly string[]; readonly dropped: ReadonlySet<number> };

/** A summary and the changes to the list that came with it. */
export type ParsedSummary = { readonly summary: string; readonly changes: FactChanges };

const [begin, end] = ['<facts>', '</facts>'] as const;

/**
 * Splits an answer of the summarising model. The list of changes may be missing; a line that was cut off is ignored.
 */
export function parseSummary(answer: string): ParsedSummary {
  const from = answer.lastIndexOf(begin);
  if (from === -1) return { summary: answer.trim(), changes: { added: [], dropped: new Set() } };
  const to = answer.indexOf(end, from);
  const lines = answer.slice(from + begin.length, to === -1 ? undefined : to).split('\n');
  const rest = to === -1 ? '' : answer.slice(to + end.length);
  if (to === -1) lines.pop();
  const added = lines.flatMap((line) => /^\s*\+(.+)$/.exec(line)?.[1] ?? []).map(factOf);
  const dropped = lines.flatMap((line) => /^\s*-\s*(\d{1,4})\b/.exec(line)?.[1] ?? []);
  return {
    summary: `${answer.slice(0, from)}${rest}`.trim(),
    changes: { added: added.filter((fact) => fact !== ''), dropped: new Set(dropped.map(Number)) },
  };
}

/** Puts the fact on one line. */
function factOf(text: string): string {
  return cleanText(text.replaceAll(/\s+/g, ' ').trim().slice(0, longestFact).toWellFormed());
}

/** Applies the changes and limits the list to `units` UTF-16 units. Known facts take precedence over new ones. */
export function changeFacts(
  facts: readonly string[],
  { added, dropped }: FactChanges,
  units: number,
): readonly string[] {
  const kept = facts.filter((_, index) => !dropped.has(index + 1));
  const known = new Set(kept.map((fact) => fact.toLowerCase()));
  const fresh = added.filter((fact) => !known.has(fact.toLowerCase()) && known.add(fact.toLowerCase()));
  let room = units;
  return [...kept, ...fresh].filter((fact) => {
    const size = fact.length + lineUnits;
    if (size > room) return false;
    room -= size;
    return true;
  });
}

/** Estimates how many more words fit into the list. */
export function wordsLeft(facts: readonly string[], units: number): number {
  const used = facts.reduce((sum, fact) => sum + fact.length + lineUnits, 0);
  return Math.max(0, Math.floor((units - used) / 8));
}

const heading = 'Remembered from this conversation:';

/** Returns the list as the conversation's model reads it. */
export function factsText(facts: readonly string[]): string {
  return [heading, ...facts.map((fact) => `- ${fact}`)].join('\n');
}

/** Parses such a text; any other text yields an empty list. */
export function readFacts(text: string): readonly string[] {
  const [first, ...lines] = text.split('\n');
  return first === heading ? lines.map((line) => line.slice(2)) : [];
}
