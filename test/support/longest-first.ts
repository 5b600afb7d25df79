import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take a minute or more, or the most processes, longest first: started last, one would end alone. */
const long = [
  'test/mutants/mutants.test.ts',
  'test/e2e/kill-matrix.test.ts',
  'test/e2e/roles.test.ts',
  'test/e2e/many-processes.test.ts',
  'test/protocol/lane-protocol.test.ts',
  'test/e2e/lock-lost.test.ts',
  'test/e2e/faults-platform.test.ts',
  'test/plugins/files/workspace-race.test.ts',
];

/** The long files, then those that start processes, then the others: the same order on every machine. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const place = long.findIndex((path) => moduleId.endsWith(path));
  if (place >= 0) return place;
  return moduleId.includes('/test/e2e/') ? long.length : long.length + 1;
}
