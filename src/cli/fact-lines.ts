import { localSecond } from '#channel-kit/time-text.ts';

/** Something that happened: one line of a story. `at`: ms since the epoch, `MAX_SAFE_INTEGER` for the present state. */
export type Fact = { readonly at: number; readonly text: string };

/** Returns the facts in chronological order; those of the same millisecond keep their given order. */
export function factLines(facts: readonly Fact[]): readonly string[] {
  return facts
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, text }) => `${timeOf(at).padEnd(timeWidth)}  ${text}`);
}

const timeWidth = 19;

/** Formats a time; accepts any stored value. */
export function timeOf(at: number): string {
  return at === Number.MAX_SAFE_INTEGER ? 'now' : localSecond(at);
}
