import fc from 'fast-check';
import { isLong } from './long-run.ts';

/** `interruptAfterTimeLimit` is for the long run, in ms, and ends the search, not the test. */
type Budget<T> = Omit<fc.Parameters<T>, 'markInterruptAsFailure' | 'reporter' | 'asyncReporter'>;

/**
 * The share of its time that a property gets. Nearly all failures that are ever found show up in the first part; the
 * rest is for the long run, and for judging broken variants.
 */
const share = Number(process.env.PROPERTY_SHARE ?? (isLong ? 1 : 0.08));

/** The full count in the long run; otherwise as many of it as fit into the time. */
export function budget(numRuns: number, ms = 1000) {
  return isLong ? { numRuns } : { numRuns, interruptAfterTimeLimit: ms };
}

/**
 * Runs `fc.assert` within a time budget. The first case runs regardless of the time, because fast-check reports a
 * property as failed if a busy machine delayed it past its limit before the first case.
 */
export function holds<T>(property: fc.IAsyncProperty<T>, budget: Budget<T>): Promise<void>;
export function holds<T>(property: fc.IProperty<T>, budget: Budget<T>): void;
export function holds<T>(
  property: fc.IRawProperty<T>,
  { interruptAfterTimeLimit, ...rest }: Budget<T>,
): Promise<void> | void {
  const first = { ...rest, numRuns: 1 };
  const others = {
    ...rest,
    markInterruptAsFailure: false,
    ...(interruptAfterTimeLimit && { interruptAfterTimeLimit: interruptAfterTimeLimit * share }),
  };
  if (property.isAsync()) {
    const asynchronous = property as fc.IAsyncProperty<T>;
    const lastCase = followCases(asynchronous);
    return fc
      .assert(asynchronous, first)
      .then(() => fc.check(asynchronous, others))
      .finally(lastCase)
      .then(report);
  }
  const synchronous = property as fc.IProperty<T>;
  fc.assert(synchronous, first);
  return report(fc.check(synchronous, others));
}

/**
 * Returns a function that waits for the end of the last case: fast-check abandons the case during which the time runs
 * out, and it would continue during the next test, on databases that are gone.
 */
function followCases<T>(property: fc.IAsyncProperty<T>): () => Promise<unknown> {
  const run = property.run.bind(property);
  let last: Promise<unknown> = Promise.resolve();
  property.run = (value) => {
    const outcome = run(value);
    last = outcome;
    return outcome;
  };
  return () => last;
}

function report<T>(details: fc.RunDetails<T>): void {
  const ranOutOfTime = details.interrupted && details.counterexample === null;
  const message = ranOutOfTime ? undefined : fc.defaultReportMessage(details);
  if (message !== undefined) throw new Error(message, { cause: details.errorInstance });
}
