/** A row: tests that share one setup and run one after the other. */
import { afterAll, describe } from 'vitest';

type AtEnd = (end: () => unknown) => void;

/**
 * Runs concurrently with the other rows and concurrent tests of its file. `atEnd` registers clean-up for after the last
 * test of the row; what was opened last is closed first.
 */
export function describeRow(
  name: string,
  define: (atEnd: AtEnd) => void,
  { isSkipped = false }: { readonly isSkipped?: boolean } = {},
): void {
  // Only a concurrent suite runs alongside others; the tests in it run in sequence.
  describe.concurrent(name, { skip: isSkipped }, () => {
    describe('in a row', { concurrent: false }, () => {
      const ends: (() => unknown)[] = [];
      afterAll(async () => {
        for (const end of ends.toReversed()) await end();
      });
      define((end) => void ends.push(end));
    });
  });
}
