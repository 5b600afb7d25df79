import { assertSafeJson } from './json-guard.ts';

/** Longest text that is parsed, UTF-16 units. */
const longest = 32 * 1024 * 1024;

/**
 * Parses JSON from outside this process or from an earlier one. Throws for invalid JSON and for values longer,
 * deeper or larger than the limits, so that callers can copy, compare and write the value without running out
 * of stack.
 */
export function parseJson(text: string): unknown {
  if (text.length > longest) throw new Error(`longer than ${longest} characters`);
  const value: unknown = JSON.parse(text);
  assertSafeJson(value);
  return value;
}
