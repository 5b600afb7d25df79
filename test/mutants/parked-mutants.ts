import type { Mutant } from './mutants.ts';

const store = 'test/store/lanes/parked.test.ts';
const runs = 'test/runs/parked.test.ts';

/** Broken variants of runs that wait for an answer from outside. */
export const parkedMutants: readonly Mutant[] = [
  {
    name: 'slot kept while parked',
    invariant: 'a run that waits for an answer from outside takes no slot',
    edit: {
      in: 'letGo',
      find: "probe.reach('parked');",
      replace: "probe.reach('parked'); await clock.wait(600_000);",
    },
    test: { file: runs, name: 'lets go of the lane' },
    isSample: true,
  },
  {
    name: 'answer lost that came before its run was parked',
    invariant: 'the step that parks a run finds the answer that has come',
    edit: {
      in: 'parkRun',
      find: 'run.cancelReason === null && (await awaitCalls(tx, runId))',
      replace: 'run.cancelReason === null',
    },
    test: { file: store, name: 'does not park when its call was settled before' },
  },
  {
    name: 'cancel flag unread by the step that parks',
    invariant: 'a run that was asked to stop is not parked',
    edit: {
      in: 'parkRun',
      find: 'run.cancelReason === null && (await awaitCalls(tx, runId))',
      replace: 'await awaitCalls(tx, runId)',
    },
    test: { file: store, name: 'does not park when it was asked to stop before' },
  },
  {
    name: 'parked run swept',
    invariant: 'nobody works on a parked run until its call is answered',
    edit: { in: 'leaveParked', find: 'waits ? parkedUntil : tx.now', replace: 'tx.now' },
    test: { file: store, name: 'is not what the sweep looks for' },
  },
  {
    name: 'stopped run left parked',
    invariant: 'a parked run that is asked to stop ends at once',
    edit: { in: 'cancelRun', find: 'await unpark(tx, lane, effects);', replace: '' },
    test: { file: store, name: 'is woken to end by' },
  },
  {
    name: 'run parked under an epoch that still counts',
    invariant: 'who has parked a run writes nothing of it any more',
    edit: { in: 'leaveParked', find: 'await raiseEpoch(tx, lane.key, epoch + 1);', replace: '' },
    test: { file: store, name: 'is written by nobody who has parked it' },
  },
  {
    name: 'wait without an end',
    invariant: 'every wait ends',
    edit: { in: 'leaveParked', find: 'Math.min(waitMs, longestParkMs)', replace: '8_000_000_000_000_000' },
    test: { file: store, name: 'goes on when its wait expires' },
  },
  {
    name: 'call left open by a wait that expired',
    invariant: 'the model reads that nobody has answered in time',
    edit: { in: 'resume', find: "if (run.state === 'parked') await expireCalls(tx, runId);", replace: '' },
    test: { file: store, name: 'goes on when its wait expires' },
  },
  {
    name: 'clock of a parked run begins anew',
    invariant: 'the time limit of a run counts its working time, all of it',
    edit: { in: 'timeLeft', find: 'limitMs - workedMs', replace: 'limitMs' },
    test: { file: runs, name: 'counts its working time only' },
  },
];
