import { eventShape } from '#channel-kit/json-guard.ts';
import { longestJson } from '#channel-kit/read-json.ts';

/** Values that no honest network sends, each as JSON: too long, with too many values, or nested endlessly. */
export const absurdJson = [
  ['a text of many characters', `"${'x'.repeat(1.5 * longestJson)}"`],
  ['a list of many numbers', `[${'1,'.repeat(2 * eventShape.values)}1]`],
  ['a list of many objects', `[${'{"id":"1"},'.repeat(eventShape.values)}{}]`],
  ['brackets without a bottom', `${'['.repeat(1_000)}${']'.repeat(1_000)}`],
] as const;
