import { stripText } from '../logging/redaction.ts';
import type { ExitCode } from './exit-code.ts';

/** Prints lines without what a terminal would obey: anybody may have written a part of one. */
export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.map(stripText).join('\n')}\n`);
}

/** Findings of a command, or what it has done. */
export type CommandOutput = {
  /** For programs. */
  readonly result: unknown;
  /** The same for people. */
  readonly lines: readonly string[];
  /** Default: 0. */
  readonly code?: ExitCode;
};

/** Prints what a command has found or done; returns its exit code. */
export function printOutput(
  { result, lines, code = 0 }: CommandOutput,
  { asJson }: { readonly asJson: boolean },
): ExitCode {
  printLines(asJson ? [JSON.stringify(result, undefined, 2)] : lines);
  return code;
}
