/**
 * For each invariant a deliberately broken variant that the tests must notice. A green suite means
 * something only if it turns red when the code is wrong.
 */

import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { shareOf, turn } from '../support/turn.ts';
import { type Mutant, readMutants } from './mutants.ts';
import { createMutator } from './mutator.ts';
import { copyWorkTree } from './work-tree.ts';

const mutants = await readMutants(import.meta.dirname);
const hasPostgres = process.env.PARLEY_TEST_DATABASE_URL !== undefined;
const chosen = shareOf(isLong ? mutants : mutants.filter(({ isSample }) => isSample), 26).filter(
  ({ needsPostgres }) => hasPostgres || !needsPostgres,
);
if (!isLong) console.info(`TEST_TURN=${turn}: ${chosen.map(({ name }) => name).join('; ')}`);
const mutate = await createMutator(fileURLToPath(new URL('../..', import.meta.url)));
const inTurn = createTurns(2);
/** For all tests that notice a variant, run one after the other. */
const limitMs = 3_000_000;

describe('broken variants', () => {
  it('fits every broken variant to the code, including those that do not run every time', () => {
    const misfits = mutants.flatMap((mutant) => {
      try {
        mutate(mutant.edits);
        return [];
      } catch (error) {
        return [`${mutant.name}: ${error instanceof Error ? error.message : error}`];
      }
    });
    expect(misfits).toEqual([]);
  });

  // In a normal run the tests that judge the variants are part of that same run.
  it.runIf(isLong)('starts from code that passes', { timeout: limitMs, concurrent: true }, () =>
    inTurn(async () => {
      await using tree = await copyWorkTree({ withPostgres: hasPostgres });
      const files = [...new Set(chosen.map(({ test }) => test.file))];
      const verdict = await tree.test({ files, names: chosen.map(({ test }) => test.name), limitMs });
      expect(verdict, verdict.output).toMatchObject({ failed: 0 });
      expect(verdict.passed).toBeGreaterThanOrEqual(new Set(chosen.map(({ test }) => test.name)).size);
    }),
  );

  it.concurrent.each(chosen)('notices the broken variant: $name', { timeout: 600_000 }, (mutant) =>
    inTurn(async () => {
      const verdict = await judge(mutant);
      expect(verdict.failed, `${mutant.test.name}\n${verdict.output}`).toBeGreaterThan(0);
    }),
  );
});

async function judge(mutant: Mutant) {
  const { test, needsPostgres } = mutant;
  await using tree = await copyWorkTree({ withPostgres: needsPostgres });
  await tree.write(mutate(mutant.edits));
  return await tree.test({ files: [test.file], names: [test.name] });
}

/** Lets `slots` tasks work at the same time: each runs tests in its own process, which wants a core. */
function createTurns(slots: number) {
  let last = Array.from({ length: slots }, () => Promise.resolve());
  let next = 0;
  return async <T>(task: () => Promise<T>): Promise<T> => {
    const slot = next++ % slots;
    const mine = (last[slot] ?? Promise.resolve()).then(task);
    last = last.with(
      slot,
      mine.then(
        () => undefined,
        () => undefined,
      ),
    );
    return mine;
  };
}
