import fc from 'fast-check';
import { it, onTestFinished } from 'vitest';
import { holds } from '../../support/holds.ts';
import { isLong } from '../../support/long-run.ts';
import { describeEachDatabase } from '../each-database.ts';
import { graphs } from '../tasks/random-graphs.ts';
import { playTask } from './play-task.ts';

/** The long run plays a fixed count, however long it takes; PROOF_SEED replays the same tasks. */
const seed = Number(process.env.PROOF_SEED ?? Date.now() % 1e9);
const budgetOf = (numRuns: number) => ({
  seed,
  ...(isLong ? { numRuns, endOnFailure: true } : { numRuns: 200, interruptAfterTimeLimit: 12_000 }),
});

const steps = fc.array(
  fc.array(fc.record({ what: fc.nat(99), who: fc.nat(1), which: fc.nat(1_000) }), {
    minLength: 1,
    maxLength: 4,
  }),
  { minLength: 5, maxLength: 40 },
);
/** Some graphs have more subtasks than one step dispatches; in the long run up to the default limit. */
const plan = fc.record({
  nodes: fc.oneof({ weight: 9, arbitrary: graphs(14) }, graphs(isLong ? 200 : 40)),
  steps,
});

describeEachDatabase('random tasks with random ends', (open, beside) => {
  it.each([
    ['one after the other, as the rules say', 1, 400],
    ['several at once, whatever comes first', 4, 400],
  ])(
    'ends each task and subtask once, with one told: %s',
    async (_, atOnce, runs) => {
      const other = await beside.open();
      onTestFinished(() => other.close());
      let played = 0;
      const property = fc.asyncProperty(plan, async ({ nodes, steps: chosen }) => {
        const batches = chosen.map((batch) => batch.slice(0, atOnce));
        await playTask({ stores: [open(), other], beside, nodes, batches });
        played += 1;
      });
      await holds(property, budgetOf(runs));
      console.info(`${beside.dialect}, seed ${seed}: ${played} tasks`);
    },
    7_200_000,
  );
});
