/** Broken variants of compaction. */
import type { Mutant } from './mutants.ts';

export const contextMutants: readonly Mutant[] = [
  {
    name: 'cut between call and result',
    invariant: 'a compaction parts no call from its results',
    edits: [{ in: 'boundariesOf', find: '&& !isInside[index]', replace: '' }],
    test: { file: 'test/agent/compaction-cut.test.ts', name: 'parts no call from its results' },
    isSample: true,
  },
  {
    name: 'unread messages summarised away',
    invariant: 'a compaction keeps what the model has not answered',
    edits: [{ in: 'cutOf', find: '.filter((index) => index <= unreadFrom(messages))', replace: '' }],
    test: {
      file: 'test/agent/compaction-cut.test.ts',
      name: 'keeps all that the model has not answered, and something before is given up',
    },
  },
  {
    name: 'summary of a holder that lost the lane',
    invariant: 'only the holder of a lane moves its summary pointer',
    edits: [
      {
        in: 'commitSummary',
        find: '(end === undefined ? lockLaneAt : lockLineageAt)(tx, laneKey, epoch)',
        replace: '(end === undefined ? Promise.resolve() : lockLineageAt(tx, laneKey, epoch))',
      },
    ],
    test: {
      file: 'test/store/lanes/commit-summary.test.ts',
      name: 'of a holder that has lost the lane changes nothing',
    },
  },
];
