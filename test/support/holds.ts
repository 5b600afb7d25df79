import fc from 'fast-check';

/** `interruptAfterTimeLimit` is in ms, of the long run, and ends the search, not the test. */
type Budget<T> = Omit<fc.Parameters<T>, 'markInterruptAsFailure' | 'reporter' | 'asyncReporter'>;

/**
 * How much of its time a property has. In the first part of it nearly all is found that is ever found; the rest is for
 * the long run, and for the judges of broken variants.
 */
const share = Number(process.env.PROPERTY_SHARE ?? (process.env.PARLEY_LONG === '1' ? 1 : 0.4));

/**
 * `fc.assert` within a time budget. The first case runs whatever the time: fast-check calls a property
 * that a busy machine held up before its first case a failure.
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
 * Returns what waits for the end of the last case: fast-check turns away from the one in which the time is over, which
 * would go on beside the next test, on databases that are gone.
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
