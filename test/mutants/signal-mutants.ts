import type { Mutant } from './mutants.ts';

const receiving = 'test/channels/signal/receiving.test.ts';
const groups = 'test/channels/signal/account-and-groups.test.ts';
const styled = 'test/channels/signal/styled-text.test.ts';

/** Broken variants of the channel whose server sends nothing twice. */
export const signalMutants: readonly Mutant[] = [
  {
    name: 'a group that cannot be read taken for a direct message',
    invariant: 'a message whose group is unclear is never answered elsewhere',
    edit: {
      in: 'noGroup',
      find: "'groupId' in value && value.groupId === ''",
      replace: "!('groupId' in value && value.groupId !== '')",
    },
    test: {
      file: 'test/inputs/signal/corpus.test.ts',
      name: 'that makes its group unclear is refused instead of being answered elsewhere',
    },
  },
  {
    name: 'a new field of signal-cli dropped',
    invariant: 'a message with nothing but unknown fields names them',
    edit: {
      in: 'unknownFieldsOf',
      find: 'isContent(name) && !isEmptyField(value) ? [name] : []',
      replace: '[]',
    },
    test: {
      file: 'test/inputs/signal/corpus.test.ts',
      name: 'that renames its only content names the new field',
    },
  },
  {
    name: 'content of Signal that cannot be read dropped',
    invariant: 'any combination of fields leaves a trace',
    edit: {
      in: 'unknownFieldsOf',
      find: 'isContent(name) && !isEmptyField(value)',
      replace: '!Object.hasOwn(fieldFates.DataMessage, name) && !isEmptyField(value)',
    },
    test: {
      file: 'test/inputs/signal/corpus.test.ts',
      name: 'of one member, wherever it is, leaves a trace',
    },
  },
  {
    name: 'a record of Signal that nobody knows dropped',
    invariant: 'any combination of fields leaves a trace',
    edit: {
      in: 'readEnvelope',
      find: 'unknown === undefined ? nothing : refuse(unknown)',
      replace: 'unknown ? nothing : nothing',
    },
    test: { file: 'test/inputs/signal/corpus.test.ts', name: 'a record that nobody knows yet' },
  },
  {
    name: 'webhook answered before the message is safe',
    invariant: 'everything the webhook answered 200 for survives',
    edit: {
      in: 'mountWebhook',
      find: 'await take(raw);',
      replace: 'void take(raw).catch(() => undefined);',
    },
    test: { file: receiving, name: 'says so while neither store nor disk can take a message' },
  },
  {
    name: 'Signal off while its identities cannot be read',
    invariant: 'a call that only confirms who we are never stops the channel',
    edit: { in: 'findAci', find: 'if (aci === undefined) throw error;', replace: 'throw error;' },
    test: {
      file: 'test/channels/signal/identity.test.ts',
      name: 'runs degraded while /v1/identities fails, from the first start on, and heals when it answers',
    },
  },
  {
    name: 'files of a message that is answered later removed',
    invariant: 'what Parley may still fetch stays on the server',
    edit: { in: 'isFetchedLater', find: 'return acceptance.keepsFiles === true;', replace: 'return false;' },
    test: { file: receiving, name: 'its files are removed from the server unless they are fetched' },
  },
  {
    name: 'newer messages pass those in the spool',
    invariant: 'what was kept while the store was away comes before what is newer',
    edit: {
      in: 'DurableIntake',
      find: 'if (this.#intake === undefined || !this.#deps.spool.isEmpty) return false;',
      replace: 'if (this.#intake === undefined) return false;',
    },
    test: { file: receiving, name: 'is kept in the file, and stored in order behind it' },
  },
  {
    name: 'half a line left in the spool',
    invariant: 'a crash in the middle of a write costs no message but the one that was not answered',
    edit: {
      in: 'Spool',
      find: 'if (await isCutOff(file, size)) {',
      replace: 'if ((await isCutOff(file, size)) && size < 0) {',
    },
    test: { file: 'test/channels/signal/spool.test.ts', name: 'loses the line that a crash cut off' },
  },
  {
    name: 'only its own spool looked into',
    invariant: 'what another process of the folder was sent is stored by the one that receives',
    edit: {
      in: 'DurableIntake',
      find: 'await spool.look().catch(',
      replace: 'await Promise.resolve().catch(',
    },
    test: {
      file: receiving,
      name: 'of a process that does not receive keeps what comes for the one that does',
    },
  },
  {
    name: 'marker behind a literal star',
    invariant: 'the markers of a text say the text and its styles, and nothing else',
    edit: {
      in: 'masksOf',
      find: 'do keepMarkersReadable(text, masks); while (dropItalicBesideBold(masks));',
      replace: 'void keepMarkersReadable; void dropItalicBesideBold;',
    },
    test: { file: styled, name: 'is the text itself, whatever it is made of' },
  },
  {
    name: 'a limited message sent again',
    invariant: 'what may have been delivered is never repeated blindly',
    edit: { in: 'limited', find: 'result: isRepeatable(content)', replace: 'result: content !== undefined' },
    test: {
      file: 'test/channels/signal/adapter.test.ts',
      name: 'with a limit and no challenge is unknown, because it may have been delivered',
    },
  },
  {
    name: 'dead socket believed',
    invariant: 'receiving that has died is noticed, though sending works',
    edit: {
      in: 'Connection',
      find: 'if (silentMs > 2 * heartbeatMs)',
      replace: 'if (silentMs > 1e9 * heartbeatMs)',
    },
    test: { file: receiving, name: 'that is dead though open is given up, opened anew, and the gap is told' },
  },
  {
    name: 'nobody adds the bot to a group',
    invariant: 'an owner who adds the bot to a group is asked whether it should answer there',
    edit: {
      in: 'GroupBook',
      find: 'this.#membership(id, group, by ?? nobody)',
      replace: 'this.#membership(id, group, nobody)',
    },
    test: { file: groups, name: 'tell the rank of who writes' },
  },
  {
    name: 'groups that are read once',
    invariant: 'a change of a group that was not told is known within the hour',
    edit: {
      in: 'GroupBook',
      find: 'return changed.length > 0 || unknown.length > 0 || isOld;',
      replace: 'return changed.length > 0 || unknown.length > 0;',
    },
    test: { file: groups, name: 'are read again at the next message after an hour' },
  },
  {
    name: 'a question asked behind every courtesy',
    invariant: 'what Parley has to know of its server is asked, however many receipts wait',
    edit: {
      in: 'BackgroundCalls',
      find: 'if (question === undefined) return this.#courtesies.shift();',
      replace: 'if (question === undefined || this.#courtesies.length > 0) return this.#courtesies.shift();',
    },
    test: { file: 'test/channels/signal/background-calls.test.ts', name: 'is asked before the courtesies' },
  },
  {
    name: 'messages of a number that nobody knows are dropped',
    invariant: 'no message is lost when the account’s number changes',
    edit: {
      in: 'Receiver',
      find: 'if (account !== undefined && account !==',
      replace: 'if (account === "" && account !==',
    },
    test: { file: groups, name: 'which is kept for it' },
  },
  {
    name: 'the webhook is refused while a start waits',
    invariant: 'what a server sends once is kept from the moment on in which Parley listens',
    edit: {
      in: 'openWaitingChannels',
      find: "if (state.kind === 'off') continue;",
      replace: "if (state.kind === 'off' || peer === undefined) continue;",
    },
    needsPostgres: true,
    test: {
      file: 'test/e2e/signal-conversation.test.ts',
      name: 'messages that come while a start waits for it are kept too',
    },
  },
  {
    name: 'a note of a loss forgets when Parley was last there',
    invariant: 'after each start it is said from when on messages may be missing',
    edit: { in: 'LastSeen', find: 'await this.read(); await replaceFile', replace: 'await replaceFile' },
    test: { file: receiving, name: 'forgets nothing of earlier processes while it notes a loss' },
  },
  {
    name: 'a loss is told by each way it came',
    invariant: 'the owner reads how many messages were lost',
    edit: { in: 'Losses', find: 'return isReported;', replace: 'return isReported && false;' },
    test: {
      file: receiving,
      name: 'says once that a message is lost that the WebSocket has brought in vain',
    },
  },
  {
    name: 'no mark that polls are made',
    invariant: 'messages that a kill may have cost are reported at the next start',
    edit: { in: 'PollMark', find: 'return left !== undefined;', replace: 'return left === this.#own;' },
    test: {
      file: receiving,
      name: 'that a kill may have cut off is told as a gap by the next process, once',
    },
  },
  {
    name: 'a mark of polls that outlives a stop',
    invariant: 'what was stopped in order has lost nothing, and says so',
    edit: { in: 'pollMarked', find: 'await mark.clear().catch(notMarked);', replace: '' },
    test: {
      file: receiving,
      name: 'that a kill may have cut off is told as a gap by the next process, once',
    },
  },
  {
    name: 'a new safety number reported as any other loss',
    invariant: 'the owner learns whose messages are held back, and how to get them',
    edit: { in: 'isNewKey', find: "type.includes('UntrustedIdentity')", replace: "type === ''" },
    test: {
      file: 'test/channels/signal/inbound.test.ts',
      name: 'names the call that trusts a person whose safety number has changed',
    },
  },
  {
    name: 'a message that was read before reported as lost',
    invariant: 'only messages that are missing are reported as missed',
    edit: { in: 'isReadAlready', find: '/DuplicateMessage|SelfSend/', replace: '/SelfSend/' },
    test: {
      file: 'test/channels/signal/inbound.test.ts',
      name: 'is nothing if signal-cli has read the message before',
    },
  },
  {
    name: 'the cause of an unreadable event forgotten',
    invariant: '`why` says why an event could not be read',
    edit: { in: 'withCause', find: 'return line ?', replace: 'return line && !line ?' },
    test: {
      file: 'test/e2e/signal-conversation.test.ts',
      name: 'the owner and `why` are told whose safety number keeps a message back',
    },
  },
  {
    name: 'an explained event reported with the others',
    invariant: 'the owner reads the cause that the channel knows',
    edit: { in: 'unreadIn', find: 'one.gap !== undefined)', replace: 'one.gap === undefined)' },
    test: {
      file: 'test/channel-host/recovery.test.ts',
      name: 'is reported with the channel’s own explanation, each kind once in a batch',
    },
  },
];
