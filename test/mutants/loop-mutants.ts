/** Broken variants of what keeps the event loop free. */
import type { Mutant } from './mutants.ts';

const desk = 'test/replies/markdown-desk.test.ts';

export const loopMutants: readonly Mutant[] = [
  {
    name: 'parser without a deadline',
    invariant: 'a text that takes the parser too long is sent as it was written',
    edit: {
      in: 'Desk',
      find: "this.#parsing = setTimeout(() => this.#cut(next, 'parser-too-slow'), this.#limits.parseMs);",
      replace: '',
    },
    test: { file: desk, name: 'gives a text that takes too long back as it was written' },
  },
  {
    name: 'long texts parsed on the event loop',
    invariant: 'no text holds the event loop',
    edit: {
      in: 'createTextShaper',
      find: 'isQuickToParse(markdown) ?',
      replace: 'isQuickToParse(markdown) || markdown.length < 1_000 ?',
    },
    test: { file: desk, name: 'shapes an ordinary answer at once and hands everything else to the desk' },
    isSample: true,
  },
];
