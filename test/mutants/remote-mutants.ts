import type { Mutant } from './mutants.ts';

/** Broken variants of the code that keeps remote numbers and refusals from rushing, stalling or ending a channel. */
export const remoteMutants: readonly Mutant[] = [
  {
    name: 'the clamp returns its input',
    invariant: 'every number from outside is one that a timer, a date or a loop can bear',
    edit: {
      in: 'clampRemote',
      find: 'return number === undefined ? fallback : Math.min(max, Math.max(min, number));',
      replace: 'void [min, max]; return number ?? fallback;',
    },
    test: { file: 'test/channel-kit/remote-number.test.ts', name: 'stays in its range, whatever it is' },
  },
  {
    name: 'the slow retry gives up',
    invariant: 'no state of a channel needs a restart to heal',
    edit: {
      in: 'supervise',
      find: 'await deps.clock.wait(waitMs, signal); }',
      replace: "if (problem.kind === 'unauthorised') return; await deps.clock.wait(waitMs, signal); }",
    },
    test: {
      file: 'test/channel-host/recovery.test.ts',
      name: 'is asked for its account again after 1, 5, 15 and 15 minutes, and says when',
    },
  },
  {
    name: 'limits by the sender’s clock',
    invariant: 'limits count by the time of receipt',
    edit: {
      in: 'withSaneTimes',
      find: 'receivedAt: clampRemote(envelope.receivedAt, range)',
      replace: 'receivedAt: clampRemote(envelope.sentAt, range)',
    },
    test: { file: 'test/inbound/receipt-time.test.ts', name: 'is limited although its messages say' },
  },
  {
    name: 'a poll without a gap',
    invariant: 'a poll that is answered at once and brings nothing new is not made again at once',
    edit: {
      in: 'PollLoop',
      find: 'if (!isNews && gapMs > 0) await clock.wait(gapMs, this.#signal);',
      replace: 'void [isNews, gapMs];',
    },
    test: {
      file: 'test/channels/telegram/remote-numbers.test.ts',
      name: 'when each is answered at once with nothing',
    },
  },
  {
    name: 'answers that nothing can be done with count as well',
    invariant: 'a channel that gets no further is shown as down',
    edit: {
      in: 'PollLoop',
      find: 'if (!isLost) this.#recovered();',
      replace: 'this.#recovered(); void isLost;',
    },
    test: {
      file: 'test/channels/telegram/remote-numbers.test.ts',
      name: 'when each is answered at once with an update without an id',
    },
  },
  {
    name: 'a long wait without its end',
    invariant: 'a channel that was asked to wait for minutes says when it tries again',
    edit: {
      in: 'PollLoop',
      find: 'const isLong = waitMs > longestBackoffMs;',
      replace: 'const isLong = waitMs > longestBackoffMs && refusal === undefined;',
    },
    test: {
      file: 'test/channels/telegram/remote-numbers.test.ts',
      name: 'when it is told to wait for 3000000 s',
    },
  },
  {
    name: 'an unreadable event that nobody learns of',
    invariant: 'an event that could not be read is reported to the owner, once',
    edit: { in: 'intakeOf', find: 'gap(missed);', replace: 'void missed;' },
    test: {
      file: 'test/channel-host/recovery.test.ts',
      name: 'is reported as one that may have been missed, once',
    },
  },
  {
    name: 'the first name for ever',
    invariant: 'the next message to the new name of a renamed bot is addressed to it',
    edit: {
      in: 'PollLoop',
      find: 'if (await identity.refreshFor(batch.events, this.#signal)) batch = await this.#read(updates);',
      replace: 'void identity.refreshFor(batch.events, this.#signal);',
    },
    test: {
      file: 'test/channels/telegram/poll.test.ts',
      name: 'is addressed by the first message to its new name, and by none to the old one',
    },
  },
  {
    name: 'a question for the name with each poll',
    invariant: 'a question that fails leads to no burst of questions',
    edit: {
      in: 'Identity',
      find: 'if (this.#isPast(this.#nextAt)) await this.#ask(signal);',
      replace: 'if (this.#isPast(this.#nextAt - longestWaitMs)) await this.#ask(signal);',
    },
    test: { file: 'test/channels/telegram/poll.test.ts', name: 'knows its new name within the hour' },
  },
  {
    name: 'an account that is not asked for anew',
    invariant: 'no state of a channel needs a restart to heal',
    edit: {
      in: 'supervise',
      find: "if (problem.code === 'server-changed') hosted = undefined;",
      replace: '',
    },
    test: {
      file: 'test/channel-host/recovery.test.ts',
      name: 'that its server knows as another one by then is asked for anew',
    },
  },
  {
    name: 'a channel is ended by a moment without the store',
    invariant: 'what a network doesn’t tell twice outlasts a restart of the store',
    edit: { in: 'keepLease', find: '!isStoreAway(error) ||', replace: 'isStoreAway(error) ||' },
    test: { file: 'test/channel-host/recovery.test.ts', name: 'outlasts a store that is away' },
  },
  {
    name: 'a stop overtakes the start that is under way',
    invariant: 'no connection outlives the stop of its channel, whenever that comes',
    edit: { in: 'startAndStop', find: 'return inTurn(end);', replace: 'return end();' },
    test: {
      file: 'test/channels/terminal/contract.test.ts',
      name: 'ends what a start begins that is told to stop before it is over',
    },
  },
  {
    name: 'an account that is down is to tell of it',
    invariant: 'the owner is told by an account that can be used, where one reaches them',
    edit: {
      in: 'tell',
      find: 'await find({ accounts })',
      replace: 'await find({ channels: accounts.map(one => one.split("/")[0] ?? "") })',
    },
    test: {
      file: 'test/channel-host/alert-reporter.test.ts',
      name: 'of an account are told by another one of its network, never by the one that is down',
    },
  },
];
