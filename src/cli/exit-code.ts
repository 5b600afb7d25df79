/** 0: success; 1: failure, explained on stderr; 2: invalid command line. */
export type ExitCode = number;
