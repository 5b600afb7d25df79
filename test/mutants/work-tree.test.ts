import { expect, it } from 'vitest';
import { assertJudged, readReport } from './work-tree.ts';

const report = (counts: object) => JSON.stringify({ numPassedTests: 1, numFailedTests: 0, ...counts });

it.each([
  ['a test that fails', { numFailedTests: 1 }, 1, 1],
  ['a promise rejected unnoticed in a passing test', {}, 1, 1],
  ['nothing when all pass', {}, 0, 0],
  ['nothing when a file did not load', { numPassedTests: 0, numFailedTestSuites: 1 }, 1, 0],
  ['nothing when the run was cut off', {}, null, 0],
])('counts as noticed: %s', (_, counts, code, failed) => {
  expect(readReport(report(counts), code).failed).toBe(failed);
});

it.each([
  ['does not load', { numPassedTests: 0, numFailedTestSuites: 1 }],
  ['has no test of that name', { numPassedTests: 0 }],
])('does not judge a variant whose file %s', (_, counts) => {
  const verdict = { ...readReport(report(counts), 1), output: 'SyntaxError' };
  const judging = () => assertJudged(verdict, { files: ['test/a.test.ts'], names: ['keeps'] });
  expect(judging).toThrow('no test of test/a.test.ts named "keeps" ran\nSyntaxError');
});
