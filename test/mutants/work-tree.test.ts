import { expect, it } from 'vitest';
import { readReport } from './work-tree.ts';

const report = (counts: object) => JSON.stringify({ numPassedTests: 1, numFailedTests: 0, ...counts });

it.each([
  ['a test that fails', { numFailedTests: 1 }, 1, 1],
  ['a promise rejected behind the back of a test that passes', {}, 1, 1],
  ['nothing when all pass', {}, 0, 0],
  ['nothing when a file did not load', { numPassedTests: 0, numFailedTestSuites: 1 }, 1, 0],
  ['nothing when the run was cut off', {}, null, 0],
])('a variant is noticed by %s', (_, counts, code, failed) => {
  expect(readReport(report(counts), code).failed).toBe(failed);
});
