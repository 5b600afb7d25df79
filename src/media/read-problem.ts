/** Why a file can't be read: `heavy` exceeds a limit, `absent` needs a library that isn't installed. */
export type ReadProblem = 'damaged' | 'locked' | 'heavy' | 'unsupported' | 'absent';

/** Thrown where a file is found unreadable. */
export class UnreadableFile extends Error {
  readonly problem: ReadProblem;

  constructor(problem: ReadProblem, options?: ErrorOptions) {
    super(problem, options);
    this.problem = problem;
  }
}
