/** Broken variants of steer-backlog, notices, outcomes, and of runs that a fault broke off. */
import type { Mutant } from './mutants.ts';

const kept = 'test/store/items/retained-steers.test.ts';
const table = 'test/store/lanes/outcome-table.test.ts';
const notices = 'test/store/items/waiting-notices.test.ts';

export const modeMutants: readonly Mutant[] = [
  {
    name: 'failed run that nobody is told of',
    invariant: 'a run that has failed is told in a line where no reaction can tell it',
    edit: { in: 'repairFor', find: "content.kind === 'reaction'", replace: "texts.internalFailure === ''" },
    test: {
      file: 'test/store/delivery/reply-outcome.test.ts',
      name: 'is told in a line where the reaction that would say so is refused',
    },
  },
  {
    name: 'rest of an album left in the group',
    invariant: 'parts of an album share one gate decision, however late they come',
    edit: { in: 'joinBundle', find: 'item.bundle?.isOneMessage === true', replace: 'false' },
    test: {
      file: 'test/store/intake/bundles.test.ts',
      name: 'counts as addressed when its last part comes after the others were taken',
    },
  },
  {
    name: 'album among people that empties the lane',
    invariant: 'what nobody has addressed to the bot drops no message',
    edit: { in: 'acceptItem', find: "isHeld ? 'room' : await", replace: 'await' },
    test: { file: 'test/store/intake/bundles.test.ts', name: 'is not fetched, and neither fills the lane' },
  },
  {
    name: 'steer consumed by an answer that nobody was told',
    invariant: 'what is cut off at the end of a run consumes nothing',
    edit: {
      in: 'endRun',
      find: `await requeueRetained(tx, { id: runId, laneKey: lane.key });
    if (message) await writeAssistant(tx, { message, runId, isFinished: true });`,
      replace: `if (message) await writeAssistant(tx, { message, runId, isFinished: true });
    await requeueRetained(tx, { id: runId, laneKey: lane.key });`,
    },
    test: { file: kept, name: 'is not consumed by an answer that was finished and never said' },
  },
  {
    name: 'steer given back and left in the transcript',
    invariant: 'a message stands in the transcript once, however often it is taken',
    edit: {
      in: 'requeueRetained',
      find: 'unread.map(({ transcriptId }) => transcriptId),',
      replace: "[''],",
    },
    test: { file: kept, name: 'starts the next run in its old place' },
  },
  {
    name: 'steer given back to whoever took it back',
    invariant: '/stop cancels what its sender has steered in',
    edit: { in: 'stopLane', find: 'await dropRetained(tx, lane.runId, ends);', replace: '' },
    test: { file: kept, name: 'is cancelled by its own sender’s /stop' },
  },
  {
    name: 'announcement outlives /stop',
    invariant: 'after a /stop no run begins that reports what its sender’s sub-agents have found',
    edit: { in: 'stopLane', find: 'isTheirs(row) || announced.has(row.id)', replace: 'isTheirs(row)' },
    test: {
      file: 'test/store/intake/stop-rights.test.ts',
      name: 'of who asked for a sub-agent cancels what it has announced and nobody has read',
    },
  },
  {
    name: 'steer given back to somebody whose access ended',
    invariant: 'what somebody has steered in ends with their access',
    edit: {
      in: 'stopRun',
      find: 'await dropRetained(tx, runId, (row) => isTheirs(row) || ids.has(row.id));',
      replace: '',
    },
    test: {
      file: 'test/store/access/access.test.ts',
      name: 'does not let a message or an announcement wait again',
    },
  },
  {
    name: 'summary outlives /stop',
    invariant: '/stop cancels what the cap has summarised too',
    edit: {
      in: 'stopLane',
      find: 'waiting + (await endSummaries(tx, lane, { isTheirs, end: stopped })) > 0',
      replace: 'waiting > 0',
    },
    test: { file: table, name: 'is cancelled by /stop, with all that its sender has waiting' },
  },
  {
    name: 'overflow told to somebody else',
    invariant: 'whoever sent what gives way is told',
    edit: {
      in: 'enforceCap',
      find: 'tell(fillNotice(tx.texts.queueDroppedOld, $$HOW), route)',
      replace: 'tell(fillNotice(tx.texts.queueDroppedOld, $$HOW), item.route)',
    },
    test: { file: table, name: 'that gives way under drop:old is refused' },
  },
  {
    name: 'waiting notice for what was answered',
    invariant: 'nobody is told that a message waits which waits no more',
    edit: {
      in: 'claimPart',
      find: 'if (await isObsolete(tx, part.key)) {',
      replace: 'if (part.key === "") {',
    },
    test: { file: notices, name: 'is dropped when its message was answered' },
    isSample: true,
  },
  {
    name: 'waiting notice in the way of an answer',
    invariant: 'a waiting notice has one attempt',
    edit: {
      in: 'recordSend',
      find: "if (result.kind !== 'sent' && isWaitingNotice(partKey)) return removePart(tx, partKey);",
      replace: '',
    },
    test: { file: notices, name: 'never holds up an answer' },
  },
  {
    name: 'one steer at a time whatever is set',
    invariant: 'run.steerDelivery says how many a boundary takes in',
    edit: { in: 'RunRecorder', find: 'this.#deps.steerDelivery;', replace: "'one-at-a-time';" },
    test: { file: 'test/runs/steering.test.ts', name: 'all at once where that is set' },
  },
  {
    name: 'lane of a broken run kept until its lease ends',
    invariant: 'a run that a fault broke off goes on when the store answers',
    edit: {
      in: 'execute',
      find: 'if (!isSuperseded) await releaseWithRetry($$INPUT);',
      replace: '',
    },
    test: { file: 'test/runs/let-go.test.ts', name: 'goes on with a run that a fault broke off' },
  },
];
