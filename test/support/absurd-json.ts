import { textBound } from '#channel-kit/bounded-json.ts';

/** Values that no honest network sends, each as JSON: too long, with too many values, or nested endlessly. */
export const absurdJson = [
  ['a text of many characters', `"${'x'.repeat(1.5 * textBound.bytes)}"`],
  ['a list of many numbers', `[${'1,'.repeat(2 * textBound.marks)}1]`],
  ['a list of many objects', `[${'{"id":"1"},'.repeat(textBound.marks)}{}]`],
  ['brackets without a bottom', `${'['.repeat(1_000)}${']'.repeat(1_000)}`],
] as const;
