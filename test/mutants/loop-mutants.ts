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
  {
    name: 'events of an answer without a turn for others',
    invariant: 'what a model server sends at once does not hold the event loop',
    edit: { in: 'inTurns', find: 'await nextTurn();', replace: '' },
    test: {
      file: 'test/models/bounded-answer.test.ts',
      name: 'events that come at once leave others their turns',
    },
  },
  {
    name: 'an event of any size',
    invariant: 'what a model server sends is bounded before it is collected and parsed',
    edit: { in: 'Meter', find: 'this.#eventBytes > eventBytes', replace: 'this.#eventBytes > answerBytes' },
    test: {
      file: 'test/models/bounded-answer.test.ts',
      name: 'an answer that is too large is not read to its end: an event that never ends',
    },
  },
  {
    name: 'an abort destroys the socket of an answer',
    invariant: 'no call that is cut off ends the process',
    edit: { in: 'exchange', find: '(answer ?? call).destroy', replace: 'call.destroy' },
    test: {
      file: 'test/http/lean-fetch.test.ts',
      name: 'ends with its signal between the last bytes of an answer and its end',
    },
  },
  {
    name: 'searches share a turn',
    invariant: 'searches that a model makes at once hold the event loop no longer than one',
    edit: { in: 'ownTurn', find: 'await turns.last;', replace: '' },
    test: {
      file: 'test/plugins/files/file-tools.test.ts',
      name: 'compiles each pattern of many calls of grep in a turn of its own',
    },
  },
  {
    name: 'a closed connection ends no call',
    invariant: 'every call over HTTP ends',
    edit: { in: 'exchange', find: 'if (answer === undefined) reject($$ANY);', replace: '' },
    test: {
      file: 'test/http/lean-fetch.test.ts',
      name: 'fails when its connection is closed without an answer, as an upgrade is that nobody asked for',
    },
  },
];
