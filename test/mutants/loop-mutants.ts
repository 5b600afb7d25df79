/** Broken variants of the code that keeps the event loop free. */
import type { Mutant } from './mutants.ts';

const formatter = 'test/replies/markdown-formatter.test.ts';

export const loopMutants: readonly Mutant[] = [
  {
    name: 'a call given up behind its first word',
    invariant: 'what somebody may have seen is never written again',
    edit: { in: 'AssistantDraft', find: "type === 'reasoning');", replace: "type !== 'finish');" },
    test: {
      file: 'test/agent/asked-anew.test.ts',
      name: 'behind its first word waits for the end of the answer',
    },
  },
  {
    name: 'the image of a given-up answer stays',
    invariant: 'an answer comes after the messages that it answers',
    edit: {
      in: 'steerAt',
      find: 'rows.length > 0 && input.givenUp !== undefined',
      replace: 'input.delivery === undefined',
    },
    test: { file: 'test/runs/message-image.test.ts', name: 'is given up for any that arrives' },
  },
  {
    name: 'parser without a deadline',
    invariant: 'a text that takes the parser too long is sent as it was written',
    edit: {
      in: 'ThreadedFormatter',
      find: "this.#parsing = setTimeout(() => this.#cut(next, 'parser-too-slow'), this.#limits.parseMs);",
      replace: '',
    },
    test: { file: formatter, name: 'gives a text that takes too long back as it was written' },
  },
  {
    name: 'long texts parsed on the event loop',
    invariant: 'no text holds the event loop',
    edit: {
      in: 'createTextShaper',
      find: 'isQuickToParse(markdown) ?',
      replace: 'isQuickToParse(markdown) || markdown.length < 1_000 ?',
    },
    test: {
      file: formatter,
      name: 'shapes an ordinary answer at once and hands everything else to the formatter',
    },
    isSample: true,
  },
  {
    name: 'batch without a turn for others',
    invariant: 'messages that come at once do not hold the event loop together',
    edit: { in: 'proposeAll', find: 'await turn();', replace: '' },
    test: {
      file: 'test/inbound/mention-gate.test.ts',
      name: 'of a batch lets others work between two messages',
    },
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
    name: 'an element of any size',
    invariant: 'no text of a network is parsed on the event loop beyond the bound',
    edit: {
      in: 'TextReader',
      find: 'if (this.#problem !== undefined) return this.unparsed(this.#problem);',
      replace: '',
    },
    test: {
      file: 'test/channel-kit/bounded-json.test.ts',
      name: 'in a list is left unparsed, and nothing else is',
    },
  },
  {
    name: 'every field of what is left unparsed',
    invariant: 'looking at a text that is left unparsed takes milliseconds, whatever it holds',
    edit: { in: 'FieldScan', find: '|| this.#fields.size >= mostFields', replace: '' },
    test: { file: 'test/channel-kit/bounded-json.test.ts', name: 'of endless fields only the first' },
  },
  {
    name: 'an update too large to be read has no id',
    invariant: 'an update that is left unparsed is passed once it is recorded',
    edit: {
      in: 'updateIdOf',
      find: 'update instanceof UnparsedJson ? update.fields : update',
      replace: 'update instanceof UnparsedJson ? {} : update',
    },
    test: { file: 'test/channels/telegram/poll.test.ts', name: 'costs neither the ones around it' },
  },
  {
    name: 'a frame of any size',
    invariant: 'no frame of Signal’s server is parsed on the event loop beyond the bound',
    edit: {
      in: 'boundFrame',
      find: 'if (problem === undefined) return raw;',
      replace: "if (problem === undefined || raw !== '') return raw;",
    },
    test: {
      file: 'test/channels/signal/remote.test.ts',
      name: 'by socket holds nothing up, and is kept raw once',
    },
  },
  {
    name: 'a dispatch of any size',
    invariant: 'no frame of Discord’s gateway is parsed on the event loop beyond the bound',
    edit: {
      in: 'readFrame',
      find: 'if (problem !== undefined) return readUnparsed(text, problem);',
      replace: "if (problem !== undefined && text === '') return readUnparsed(text, problem);",
    },
    test: {
      file: 'test/channels/discord/bounds.test.ts',
      name: 'a message with a list of many objects',
    },
  },
  {
    name: 'a dispatch that is too large is left out',
    invariant: 'a dispatch that is left unparsed moves the session on and is recorded',
    edit: {
      in: 'readUnparsed',
      find: "return t === 'READY' ? undefined : readDispatch",
      replace: "return t !== '' ? undefined : readDispatch",
    },
    test: {
      file: 'test/channels/discord/bounds.test.ts',
      name: 'a message with a list of many objects',
    },
  },
  {
    name: 'a large guild counts as told of',
    invariant: 'a guild whose description is too large is asked for before its channels count as known',
    edit: {
      in: 'Receiver',
      find: 'if (d instanceof UnparsedJson) {',
      replace: "if (d instanceof UnparsedJson && t !== 'GUILD_CREATE') {",
    },
    test: { file: 'test/channels/discord/bounds.test.ts', name: 'that is told of with too much at once' },
  },
  {
    name: 'a history that is always asked for whole',
    invariant: 'a history whose reply is too large is read in smaller parts',
    edit: { in: 'History', find: 'limit = Math.floor(limit / 10);', replace: 'limit = pageSize;' },
    test: { file: 'test/channels/discord/bounds.test.ts', name: 'is a gap, and others go on' },
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
