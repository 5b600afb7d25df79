import type { CommandEnd } from './run-command.ts';

/** Says how a command has ended, and what to do about it, in one line for the model. */
export function describeEnd(end: CommandEnd, timeoutMs: number): string {
  switch (end.kind) {
    case 'exited':
      return end.code === 137
        ? '(exit code 137: it was killed, perhaps because it used too much memory)'
        : `(exit code ${end.code})`;
    case 'timed-out':
      return `(ended after ${timeoutMs / 1000} s, the time limit, with everything that it had started)`;
    case 'stopped':
      return '(ended on request, with everything that it had started)';
    case 'not-started':
      return `(not started: ${end.problem})`;
    default:
      return end satisfies never;
  }
}

/** Puts an output above a line about it. */
export function withOutput(output: string, line: string): string {
  const shown = output.trimEnd();
  return shown === '' ? `(no output)\n${line}` : `${shown}\n${line}`;
}
