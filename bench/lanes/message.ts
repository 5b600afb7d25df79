/** The text of a benchmark message, which encodes its number and when it was offered. */
export type Marked = { readonly lane: number; readonly number: number; readonly at: number };

const filler =
  'a question about as long as people write them, with a second half that says what it is about.';
const answerFiller =
  'An answer of middle length, as models give them to short questions. It has a few sentences, none of which says much. '.repeat(
    3,
  );

export function questionOf({ lane, number, at }: Marked): string {
  return `q${lane}:${number}:${at.toFixed(2)} ${filler}`;
}

export function answerTo(question: string): string {
  const { lane, number, at } = markOf(question);
  return `Re q${lane}:${number}:${at.toFixed(2)} ${answerFiller}`;
}

/** Returns the number of a question or an answer; undefined for Parley's own waiting notice. */
export function findMark(text: string): Marked | undefined {
  const [, lane, number, at] = /\bq(\d+):(\d+):([\d.]+) /.exec(text) ?? [];
  return at === undefined ? undefined : { lane: Number(lane), number: Number(number), at: Number(at) };
}

/** Returns the mark in the text. Throws when there is none. */
export function markOf(text: string): Marked {
  const mark = findMark(text);
  if (!mark) throw new Error(`no mark in: ${text.slice(0, 200)}`);
  return mark;
}

/** Returns the platform's conversation id for a lane's number. All ids have the same length. */
export function conversationOf(lane: number): string {
  return String(7_000_000_000 + lane);
}
