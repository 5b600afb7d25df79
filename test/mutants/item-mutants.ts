/** Broken variants of changes that people make to waiting messages, and of settings by level. */
import type { Mutant } from './mutants.ts';

const items = 'test/store/items/items.test.ts';
const settings = 'test/inbound/queue-command.test.ts';
const lockOrder = 'test/store/base/lock-order.test.ts';

const lanes = 'test/store/reads/live-lanes.test.ts';
const pageLanes = 'test/roles/owner-lanes.test.ts';

export const itemMutants: readonly Mutant[] = [
  {
    name: 'the page reads the lanes without a pause',
    invariant: 'an open list of lanes costs no reads while nothing changes',
    edit: {
      in: 'countChanges',
      find: 'await clock.wait(waitMs, AbortSignal.any([signal, stopping.signal, changed.signal]));',
      replace: '',
    },
    test: { file: pageLanes, name: 'reads nothing meanwhile' },
  },
  {
    name: 'the page misses what changed while it read',
    invariant: 'a change during a read of the lanes is shown by the next',
    edit: { in: 'countChanges', find: 'if (known !== version) return;', replace: '' },
    test: { file: pageLanes, name: 'reads nothing meanwhile' },
  },
  {
    name: 'a mode for a sub-agent',
    invariant: 'nobody changes the mode of lanes of Parley’s own',
    edit: { in: 'setLaneMode', find: `lane?.class !== 'main'`, replace: 'lane === undefined' },
    test: { file: lanes, name: 'lets nobody change its mode' },
  },
  {
    name: 'a lane on two pages',
    invariant: 'the pages of the list of lanes show each lane once',
    edit: { in: 'idleKeys', find: `.where('runId', 'is', null)`, replace: '' },
    test: { file: lanes, name: 'without a gap or a repeat' },
  },
  {
    name: 'new words with the owner’s rights',
    invariant: 'a message that the owner rewords keeps the rights of its sender',
    edit: { in: 'wordsFor', find: 'sender: author,', replace: `sender: { ...author, authority: 'owner' },` },
    test: { file: pageLanes, name: 'changes anything that waits' },
  },
  {
    name: 'the queue holds what waits in sub-agents',
    invariant: 'the command line lists what waits in conversations, and nothing of lanes of Parley’s own',
    edit: { in: 'readQueuedItems', find: ".where('lanes.class', '=', peoples)", replace: '' },
    test: { file: 'test/store/reads/queued-items.test.ts', name: 'without what waits in sub-agents' },
  },
  {
    name: 'a given-up run waits for a clock',
    invariant: 'a clock that is set back holds no run up',
    edit: { in: 'startSweeper', find: 'sweep.now < sweptAt', replace: 'false' },
    test: { file: 'test/queue/sweeper.test.ts', name: 'a clock that was set back while' },
  },
  {
    name: 'a window without end',
    invariant: 'somebody who keeps writing is answered ten windows after their first message',
    edit: {
      in: 'windowEnd',
      find: 'Math.min(tx.now + windowMs, first + longestWindows * windowMs)',
      replace: 'tx.now + windowMs',
    },
    test: { file: 'test/store/lanes/lanes.test.ts', name: 'ten times its length' },
  },
  {
    name: 'a correction outlives its message',
    invariant: 'what is deleted is not answered, be it as a correction that came too late for its run',
    edit: { in: 'applyDelete', find: "await withdrawCorrections(tx, found, 'deleted');", replace: '' },
    test: { file: 'test/inbound/changes.test.ts', name: 'the correction that came too late' },
  },
  {
    name: 'a correction that was read outlives its message',
    invariant: 'what is deleted is not answered, be it as a correction that its run has given back',
    edit: {
      in: 'withdrawCorrections',
      find: '|| isCorrectionOf({ ...kept, content: json.content(kept.content) }, row)',
      replace: '',
    },
    test: {
      file: 'test/store/items/retained-steers.test.ts',
      name: 'takes with it what has corrected it when it is deleted',
    },
  },
  {
    name: 'a late correction is not found again',
    invariant: 'what corrects a message after its run is changed and withdrawn with it',
    edit: { in: 'canBeCorrected', find: '|| (await correctionsOf(tx, found)).length > 0', replace: '' },
    test: { file: 'test/store/lanes/queue-model.test.ts', name: 'does what its reference model does' },
  },
  {
    name: 'newest message beyond what is read',
    invariant: 'an interruption lets the newest message run next, however many wait',
    edit: { in: 'mostRead', find: '2_000', replace: '500' },
    test: { file: items, name: 'lets the newest run next however many wait' },
  },
  {
    name: 'a summary line is left without a message behind it',
    invariant: 'a message that the cap made a line of is read, whatever is withdrawn behind it',
    edit: { in: 'reviveSummary', find: 'await reopenSummarized(tx, newest.inboxId);', replace: '' },
    test: {
      file: items,
      name: 'is the line that the cap made of a message as well, once all behind it is stopped',
    },
  },
  {
    name: 'a batch decides by its lanes as they were before it',
    invariant: 'what an event of a batch changes counts for the next one',
    edit: {
      in: 'acceptBatch',
      find: 'if (!leavesLanes.has(proposal.decision.kind)) views.forget();',
      replace: '',
    },
    test: { file: items, name: 'counts for each event of a batch as the one before has left it' },
  },
  {
    name: 'a view counts twice',
    invariant: 'what an event of a batch changes counts for the next one',
    edit: { in: 'LaneViews', find: 'this.#views.delete(laneKey);', replace: '' },
    test: { file: items, name: 'counts for each event of a batch as the one before has left it' },
  },
  {
    name: 'conversation locked before the lanes',
    invariant: 'lanes are locked before conversations, by every step',
    edit: { in: 'recordDelivery', find: 'await lockReached(tx, input);', replace: '' },
    test: { file: lockOrder, name: 'waits for the lane before it has the conversation' },
    needsPostgres: true,
  },
  {
    name: 'lane awaited behind the conversation',
    invariant: 'lanes are locked before conversations, by every step',
    edit: { in: 'tryLockLanes', find: '.forUpdate().skipLocked()', replace: '.forUpdate()' },
    test: { file: lockOrder, name: 'never waits for a lane when it gives up a part' },
    needsPostgres: true,
  },
  {
    name: 'lanes of edits locked as they come',
    invariant: 'several lanes are locked in one order, by every step',
    edit: { in: 'acceptBatch', find: '...(await readChangedLanes(tx, input.proposals)),', replace: '' },
    test: { file: lockOrder, name: 'so that two batches never wait for each other: a message and an edit' },
    needsPostgres: true,
  },
  {
    name: 'new lanes made as they come',
    invariant: 'several lanes are locked and made in one order, by every step',
    edit: { in: 'makeMissingLanes', find: `order by \${depth}, key`, replace: '' },
    test: { file: lockOrder, name: 'are locked and made in key order' },
    needsPostgres: true,
  },
  {
    name: 'new lanes made ahead of those that are there',
    invariant: 'several lanes are locked and made in one order, by every step',
    edit: {
      in: 'makeMissingLanes',
      find: `union all select * from lanes where key = any(array(select json_array_elements_text(\${of.keys}::json)))`,
      replace: '',
    },
    test: { file: lockOrder, name: 'are not made while a lower one is waited for' },
    needsPostgres: true,
  },
  {
    name: 'lines outlive their conversation',
    invariant: 'what the cap has made a line of ends like all else that waits',
    edit: {
      in: 'endWaiting',
      find: 'await endSummaries(tx, lane, { isTheirs, end });',
      replace: '{ void lane; }',
    },
    test: {
      file: 'test/store/delivery/unreachable.test.ts',
      name: 'ends those as well that the cap has made a line of',
    },
  },
  {
    name: 'command claimed behind the conversation',
    invariant: 'who has a conversation waits for no lane',
    edit: { in: 'commitAnswer', find: "&& waiting[0]?.kind === 'message'", replace: '' },
    test: { file: lockOrder, name: 'has its conversation and wants no lane after it' },
    needsPostgres: true,
  },
  {
    name: 'a bundle cut short by others',
    invariant: 'what waits for its last part is put off and cut short by no other message',
    edit: { in: 'decideDue', find: ".where('bundle', 'is', null)", replace: '' },
    test: { file: 'test/store/intake/windows.test.ts', name: 'leaves a text that goes on its own window' },
  },
  {
    name: 'a correction of another conversation',
    invariant: 'messages of a lane are told apart by conversation and id',
    edit: {
      in: 'isCorrectionOf',
      find: '&& conversationKey === message.conversationKey',
      replace: '&& conversationKey !== undefined && message !== undefined',
    },
    test: {
      file: 'test/store/items/retained-steers.test.ts',
      name: 'leaves alone the correction of a message that has the same id elsewhere',
    },
  },
  {
    name: 'one bad event handed over for ever',
    invariant: 'an event that can’t be taken in holds up no other',
    edit: {
      in: 'isEnvironmentFault',
      find: 'isStoreAway(error)',
      replace: "isStoreAway(error) || hasCode(error, 'invalid_input')",
    },
    test: { file: 'test/inbound/known-ids.test.ts', name: 'is kept as one that nobody can read' },
  },
  {
    name: 'a message given up with its lane',
    invariant: 'a lane that can’t be worked takes in what is sent to it',
    edit: { in: 'acceptOneByOne', find: 'reserve: () => undefined', replace: 'reserve: all.reserve' },
    test: { file: 'test/inbound/known-ids.test.ts', name: 'is taken in all the same' },
  },
  {
    name: 'cancel of a message that was taken',
    invariant: 'a message is cancelled only while it waits',
    edit: { in: 'endItems', find: '.where(isOpenItem())', replace: '' },
    test: { file: items, name: 'is left to the run that has taken it' },
    isSample: true,
  },
  {
    name: 'edit of a message that was taken',
    invariant: 'other words for what the run has read reach it as a correction',
    edit: {
      in: 'reword',
      find: 'await rows.where(isOpenItem()).executeTakeFirst();',
      replace: 'await rows.executeTakeFirst();',
    },
    test: { file: items, name: 'is left to the run that has taken it' },
  },
  {
    name: 'rank ignored by what chooses the next run',
    invariant: 'what was promoted comes next',
    edit: { in: 'waitingIn', find: ".orderBy('rank')", replace: '' },
    test: { file: items, name: 'comes next when it is promoted' },
  },
  {
    name: 'promoted across a /new',
    invariant: 'nothing passes a /new that waits',
    edit: { in: 'promote', find: "if (isBehindCommand(open, row)) return { kind: 'behind' };", replace: '' },
    test: { file: items, name: 'passes no /new that waits, whoever asks' },
  },
  {
    name: 'an interruption that keeps the order',
    invariant: 'the newest message runs next in the mode interrupt',
    edit: {
      in: 'touchActiveRun',
      find: 'await putNewestAhead(tx, lane, { id: item.id, by: senderRef(item) });',
      replace: 'void putNewestAhead;',
    },
    test: { file: items, name: 'lets the newest run next' },
  },
  {
    name: 'everybody changes everything that waits',
    invariant: 'one changes what is one’s own, owners and administrators any',
    edit: {
      in: 'mayChange',
      find: 'return actor.mayChangeAny || isOwn(actor, row);',
      replace: 'return isOwn(actor, row) || true;',
    },
    test: { file: items, name: 'is changed by its sender and by who may change any' },
  },
  {
    name: 'a second /queue forgets the first',
    invariant: 'what /queue has named holds until it is named anew or reset',
    edit: {
      in: 'changeSettings',
      find: '{ ...json.queueSettings(lane.overrides), ...change }',
      replace: '{ ...change }',
    },
    test: { file: settings, name: 'are each that of the first level that names it' },
  },
  {
    name: 'one /queue freezes all settings',
    invariant: 'what /queue has not named follows the configuration',
    edit: {
      in: 'followConfiguration',
      find: 'const settings = { ...configured, ...json.queueSettings(lane.overrides) };',
      replace: `if (lane.overrides !== null) return lane;
  const settings = { ...configured };`,
    },
    test: { file: settings, name: 'that /queue has not named follow the configuration' },
  },
  {
    name: 'lines of a full queue without end',
    invariant: 'what a run is shown of a full queue is bounded, however long it waits',
    edit: { in: 'summarize', find: 'all.slice(-mostSummaries)', replace: 'all' },
    test: { file: 'test/inbound/drop-levels.test.ts', name: 'keeps no more than 200 lines' },
  },
  {
    name: 'a message that seems to wait for nothing behind a parked run',
    invariant: 'Parley can say what a message waits for',
    edit: {
      in: 'beforeIt',
      find: 'run === undefined ?',
      replace: 'run === undefined || run.parkedAt !== undefined ?',
    },
    test: { file: 'test/store/reads/why/why-sentences.test.ts', name: 'what waits behind it' },
  },
  {
    name: 'one of several calls taken for the one that was asked for',
    invariant: 'an id that stands for several things is answered with their names',
    edit: {
      in: 'resolveSubject',
      find: 'if (found.length === 1) return',
      replace: 'if (found.length > 0) return',
    },
    test: { file: 'test/store/reads/why/why-ids.test.ts', name: 'is one of several calls' },
  },
];
