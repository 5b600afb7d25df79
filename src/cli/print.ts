import { stripText } from '../logging/redaction.ts';
import type { ExitCode } from './exit-code.ts';

/** Prints lines without anything that a terminal would obey, since anyone may have written parts of them. */
export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.map(stripText).join('\n')}\n`);
}

/** The findings of a command, or what it did. */
export type CommandOutput = {
  /** For programs. */
  readonly result: unknown;
  /** The same for people. */
  readonly lines: readonly string[];
  /** Default: 0. */
  readonly code?: ExitCode;
};

/** Prints what a command found or did; returns its exit code. */
export function printOutput(
  { result, lines, code = 0 }: CommandOutput,
  { asJson }: { readonly asJson: boolean },
): ExitCode {
  printLines(asJson ? [JSON.stringify(result, undefined, 2)] : lines);
  return code;
}
