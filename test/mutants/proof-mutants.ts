/** Broken variants of the queue that only a race or an unreachable process reveals. */
import type { Mutant } from './mutants.ts';

const endOfRun = {
  file: 'test/queue/end-of-run.test.ts',
  name: 'are each taken once, in order, in every mode, without a sweeper',
};

const postbox = 'test/store/sqlite/postbox.test.ts';
const pipelined = 'test/store/postgres/pipelined-steps.test.ts';
const storeTrouble = 'test/outbox/store-trouble.test.ts';
const storeAway = 'test/runs/store-away.test.ts';

export const proofMutants: readonly Mutant[] = [
  {
    name: 'a connection is used on behind a statement that failed',
    invariant: 'what a connection has prepared is known: one that has failed a step is thrown away',
    edit: { in: 'lender', find: 'connection.hasFailed ||', replace: '' },
    needsPostgres: true,
    test: { file: pipelined, name: 'leaves its connection to nobody' },
  },
  {
    name: 'a read fails with a statement of another',
    invariant: 'reads that share a connection share no failure',
    edit: {
      in: 'openPostgresStore',
      find: "if (error instanceof ParleyError && error.code !== 'internal')",
      replace: '',
    },
    needsPostgres: true,
    test: { file: 'test/store/postgres/shared-reads.test.ts', name: 'fail each for itself' },
  },
  {
    name: 'a write that nobody waits for is sent behind what follows',
    invariant: 'statements reach PostgreSQL in the order in which a step asks for them',
    edit: {
      in: 'Connection',
      find: 'this.#gather().ask({ query, parameters });',
      replace: 'setImmediate(() => this.#gather().ask({ query, parameters }));',
    },
    test: { file: pipelined, name: 'has them in their order' },
    needsPostgres: true,
    isSample: true,
  },
  {
    name: 'any claim is taken over after one without an answer',
    invariant: 'only a claim that its holder was never told of is taken over while it holds',
    edit: {
      in: 'claimDelivery',
      find: 'input.unanswered?.includes(claim) === true',
      replace: 'input.unanswered !== undefined',
    },
    test: {
      file: 'test/store/delivery/interrupted-send.test.ts',
      name: 'is taken over by its id, at once and with all attempts',
    },
  },
  {
    name: 'every claim of a process has one name',
    invariant: 'a claim whose call may have begun is never taken for one without an answer',
    edit: { in: 'policyOf', find: 'claimId: newRowId()', replace: "claimId: 'this'" },
    test: { file: storeTrouble, name: 'sends nothing twice' },
  },
  {
    name: 'a result recorded twice',
    invariant: 'a result of a send counts once, however often its commit is asked for',
    edit: { in: 'isAhead', find: 'attempts !== undefined', replace: 'attempts === 0' },
    test: { file: storeTrouble, name: 'mends a part once' },
  },
  {
    name: 'what waits is read before the lock',
    invariant: 'a step decides by what it has read behind the lock of its lane',
    edit: {
      in: 'lockForAnswer',
      find: 'const [lane, waiting, $$RUN] = await Promise.all([$$LOCK, readWaiting(tx, laneKey), $$REST]);',
      replace:
        'const [waiting, lane, $$RUN] = await Promise.all([readWaiting(tx, laneKey), $$LOCK, $$REST]);',
    },
    test: { file: pipelined, name: 'is read behind the wait for it' },
    needsPostgres: true,
  },
  {
    name: 'plans are kept for ever',
    invariant: 'no plan made for a small table survives its growth',
    edit: {
      in: 'Connection',
      find: 'this.post(discarding, []);',
      replace: '',
    },
    test: { file: pipelined, name: 'has its plan made anew as its table grows' },
    needsPostgres: true,
  },
  {
    name: 'a run ends without a look at what waits',
    invariant: 'finish or go on is one decision under the lane’s lock',
    edit: {
      in: 'lookAhead',
      find: "if (!head) return { kind: 'idle' };",
      replace: "if (now > 0 || !head) return { kind: 'idle' };",
    },
    test: endOfRun,
    isSample: true,
  },
  {
    name: 'no wake for a lane at rest',
    invariant: 'a message that finds no run has its lane woken without the sweep',
    edit: {
      in: 'placeItem',
      find: 'if (lane.runId === null || lane.leaseUntil <= tx.now)',
      replace: 'if (lane.runId !== null && lane.leaseUntil <= tx.now)',
    },
    test: endOfRun,
  },
  {
    name: 'a store that is away ends the run',
    invariant: 'a fault of the store is nobody’s outcome: the run stands as it is stored',
    edit: { in: 'follow', find: 'watch.check();', replace: '{}' },
    test: { file: storeAway, name: 'is thrown to its holder' },
  },
  {
    name: 'a run begun anew beside itself',
    invariant: 'a clock that is set forward takes no run from a process that works on it',
    edit: {
      in: 'dispatchDue',
      find: 'lane.isAbandoned && deps.worksOn?.(lane.laneKey)',
      replace: 'lane.isAbandoned && !deps.worksOn',
    },
    test: { file: 'test/queue/sweeper.test.ts', name: 'leaves a run alone that this process works on' },
  },
  {
    name: 'a run begun anew for what waits behind it',
    invariant: 'a lane with a run is found by its run alone',
    edit: { in: 'readSweep', find: 'row.runId === null &&', replace: '' },
    test: { file: 'test/queue/sweeper.test.ts', name: 'leaves a run alone that this process works on' },
  },
  {
    name: 'a failing page read over and over',
    invariant: 'whatever fails on a page of the sweep, the next page is read',
    edit: {
      in: 'startSweeper',
      find: "await attempt('due rows', lookAtDue);",
      replace:
        "await attempt('due rows', () => lookAtDue().catch((error) => { after = undefined; throw error; }));",
    },
    test: { file: 'test/queue/sweeper.test.ts', name: 'goes on behind a page' },
  },
  {
    name: 'one damaged row holds up the others',
    invariant: 'a row that can’t be acted on keeps no other from its turn',
    edit: { in: 'actApart', find: 'isStoreAway(error)', replace: 'isStoreAway(error) || others.length > 0' },
    test: { file: 'test/queue/waiting-notices.test.ts', name: 'the row of one message is damaged' },
  },
  {
    name: 'alarms of others ended while they hold',
    invariant: 'an alarm ends when its lane moves, not when a process starts',
    edit: {
      in: 'forgetOthers',
      find: 'for (const laneKey of alarmed) { if (found.has(laneKey)) continue;',
      replace: 'for (const laneKey of alarmed) {',
    },
    test: { file: 'test/queue/sweeper.test.ts', name: 'ends the alarms of other processes' },
  },
  {
    name: 'dead lanes behind the first page unseen',
    invariant: 'lanes that can’t go on hide none that can',
    edit: { in: 'readSweep', find: 'reached(after?.lane, lastOf(unfinished))', replace: "'end'" },
    test: { file: 'test/store/lanes/sweep.test.ts', name: 'reads dead lanes and runs out of budget' },
  },
  {
    name: 'runs behind the first page of an empty budget unseen',
    invariant: 'runs that wait for one budget hide none that wait for another',
    edit: { in: 'readSweep', find: 'reached(after?.run, waits.next)', replace: "'end'" },
    test: { file: 'test/store/lanes/sweep.test.ts', name: 'reads dead lanes and runs out of budget' },
  },
  {
    name: 'a step of a tool that may be stored is told as failed',
    invariant: 'the model is told of no failure that may be a success, so it repeats nothing',
    edit: { in: 'watched', find: 'watch.ask(tool.execute(input, ctx))', replace: 'tool.execute(input, ctx)' },
    test: { file: storeAway, name: 'while a tool asks' },
  },
  {
    name: 'a run that its process hands over wakes nobody',
    invariant: 'an unfinished run that nobody works on is gone on with, without the sweep',
    edit: {
      in: 'work',
      find: "if (left?.kind === 'handed-over')",
      replace: "if (left?.kind === 'handed-over' && signal.aborted)",
    },
    test: { file: 'test/runs/let-go.test.ts', name: 'goes on with a run that was handed over at once' },
  },
  {
    name: 'a wake is dropped while the one before it is at work',
    invariant: 'a wake that comes while its lane is being worked is kept for afterwards',
    edit: {
      in: 'createWakes',
      find: 'deduplication: { id: laneKey, keepLastIfActive: true, replace: true },',
      replace: 'deduplication: { id: laneKey },',
    },
    test: endOfRun,
  },
  {
    name: 'a holder that stood still writes on',
    invariant: 'every write of an earlier epoch is refused, by whichever process',
    edit: {
      in: 'lockLaneAt',
      find: 'if (lane && lane.epoch === epoch) return lane;',
      replace: 'if (lane) return lane;',
    },
    test: {
      file: 'test/e2e/lock-lost.test.ts',
      name: 'answer everything once, whichever of them stands still',
    },
    needsPostgres: true,
  },
  {
    name: 'what waits behind a run that failed is left',
    invariant: 'the drain depends on what waits, not on how the last run ended',
    edit: {
      in: 'endRun',
      find: 'closeRun(tx, lane, closing, await readWaiting(tx, lane.key)), effects };',
      replace: 'closeRun(tx, lane, closing, []), effects };',
    },
    test: {
      file: 'test/store/lanes/pitfalls.test.ts',
      name: 'runs what waits behind a run, however that run ends',
    },
  },
  {
    name: 'a commit counts before it is flushed',
    invariant: 'what was acknowledged survives a power cut',
    edit: {
      in: 'open',
      find: "connection.pragma('synchronous = FULL');",
      replace: "connection.pragma('synchronous = NORMAL');",
    },
    test: { file: 'test/store/sqlite/durability.test.ts', name: 'has reached the disk before it counts' },
  },
  {
    name: 'a run ends although it has just taken a message in',
    invariant: 'what was taken is answered or its end is told',
    edit: {
      in: 'RunRecorder',
      find: "if (reason === 'handover' || reason === 'lost' || this.hasUnread) return;",
      replace: "if (reason === 'handover' || reason === 'lost') return;",
    },
    test: { file: 'test/runs/time-over.test.ts', name: 'is gone on with, and that message is answered' },
  },
  {
    name: 'each request is a message to the writer',
    invariant: 'what a turn of the event loop asks for while the writer works goes as one message',
    edit: {
      in: 'createPostbox',
      find: 'if (isWorking) setImmediate(flush);',
      replace: 'if (batch.length < 0) return;',
    },
    test: { file: postbox, name: 'one at work once for all that a turn of the loop asks for' },
  },
  {
    name: 'a writer at rest is asked later',
    invariant: 'a writer at rest is asked at once',
    edit: { in: 'createPostbox', find: 'queueMicrotask(flush)', replace: 'setImmediate(flush)' },
    test: { file: postbox, name: 'asks a writer at rest at once' },
  },
  {
    name: 'the store closes over what it was asked',
    invariant: 'a store that closes commits what was asked before',
    edit: { in: 'openSqliteStore', find: 'post.flush();', replace: '' },
    test: { file: postbox, name: 'commits what was asked for before it closes' },
  },
  {
    name: 'a warning of what the start itself holds',
    invariant: 'a start causes no warning of the work that it consists of',
    edit: { in: 'createHolds', find: 'now() < warmAt ||', replace: '' },
    test: { file: 'test/logging/loop-watch.test.ts', name: 'warns only of what comes after it' },
  },
];
