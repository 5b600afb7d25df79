import type { Mutant } from './mutants.ts';

const ledger = 'test/store/money/model-calls.test.ts';

/** Of the ledger of model calls and of budgets. */
export const moneyMutants: readonly Mutant[] = [
  {
    name: 'budget without a judge',
    invariant: 'a call is held in a budget only where it has room',
    edits: [
      {
        in: 'reserveBudgets',
        find: '(await holdIfRoom.run(tx, { key, limit, amount })) === 0',
        replace: '(await holdIfRoom.run(tx, { key, limit: limit + 1e6, amount })) === 0',
      },
    ],
    test: { file: ledger, name: 'holds a call in all of its budgets or in none' },
  },
  {
    name: 'unknown call released',
    invariant: 'what may have been counted costs its bound',
    edits: [
      {
        in: 'closeModelCalls',
        find: "end.state === 'unknown' ? await readBound(tx, runId, id) : 0",
        replace: '0',
      },
    ],
    test: { file: ledger, name: 'charges every end of a run that broke off' },
  },
];
