import { stripText } from '../logging/redaction.ts';

/** Prints lines without what a terminal would obey: anybody may have written a part of one. */
export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.map(stripText).join('\n')}\n`);
}

export type CommandResult = {
  readonly asJson: boolean;
  /** For programs. */
  readonly result: unknown;
  /** The same for people. */
  readonly lines: readonly string[];
};

/** Prints what a command has found or done. */
export function printResult({ asJson, result, lines }: CommandResult): void {
  printLines(asJson ? [JSON.stringify(result, undefined, 2)] : lines);
}
