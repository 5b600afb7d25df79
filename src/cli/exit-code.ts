/** 0: done; 1: it did not work, and stderr says why; 2: the command line itself was wrong. */
export type ExitCode = number;
