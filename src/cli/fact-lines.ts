import { timeText } from '../logging/time-text.ts';

/** Something that happened: one line of a story. `at`: ms since the epoch, `MAX_SAFE_INTEGER` for what is so now. */
export type Fact = { readonly at: number; readonly text: string };

/** The facts in order of time; those of one millisecond stay in the order in which they are given. */
export function factLines(facts: readonly Fact[]): readonly string[] {
  return facts
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, text }) => `${timeOf(at).padEnd(timeWidth)}  ${text}`);
}

const timeWidth = 24;

/** Takes any stored value. */
export function timeOf(at: number): string {
  return at === Number.MAX_SAFE_INTEGER ? 'now' : timeText(at);
}
