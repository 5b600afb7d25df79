/** Broken variants of the queue that only a race or a process that was away shows. */
import type { Mutant } from './mutants.ts';

const endOfRun = {
  file: 'test/queue/end-of-run.test.ts',
  name: 'are each taken once, in order, in every mode, without a sweeper',
};

export const proofMutants: readonly Mutant[] = [
  {
    name: 'a run ends without a look at what waits',
    invariant: 'finish or go on is one decision under the lane’s lock',
    edits: [
      {
        file: 'src/store/lanes/close-run.ts',
        find: "if (!head) return { kind: 'resting' };",
        replace: "if (now > 0 || !head) return { kind: 'resting' };",
      },
    ],
    test: endOfRun,
    isSample: true,
  },
  {
    name: 'no wake for a lane at rest',
    invariant: 'a message that finds no run has its lane woken without the sweep',
    edits: [
      {
        file: 'src/store/intake/accept-item.ts',
        find: 'if (lane.runId === null || lane.leaseUntil <= tx.now)',
        replace: 'if (lane.runId !== null && lane.leaseUntil <= tx.now)',
      },
    ],
    test: endOfRun,
  },
  {
    name: 'a wake is dropped while the one before it is at work',
    invariant: 'a wake that comes while its lane is being worked is kept for afterwards',
    edits: [
      {
        file: 'src/queue/wakes.ts',
        find: 'deduplication: { id: laneKey, keepLastIfActive: true, replace: true },',
        replace: 'deduplication: { id: laneKey },',
      },
    ],
    test: endOfRun,
  },
];
