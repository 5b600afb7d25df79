import { assertSafeJson, type ShapeLimits, widestShape } from './json-guard.ts';

/** Longest text that is parsed where no narrower limit is named, UTF-16 units. */
const longest = 32 * 1024 * 1024;

/**
 * `JSON.parse` for whatever was written outside of this process, or by an earlier one. Throws for what is
 * no JSON, and for what is longer, deeper or larger than the limits: whoever copies, compares or writes
 * the value can then do so without running out of stack.
 */
export function parseJson(
  text: string,
  { maxLength = longest, ...shape }: Partial<ShapeLimits> & { readonly maxLength?: number } = {},
): unknown {
  if (text.length > maxLength) throw new Error(`longer than ${maxLength} characters`);
  const value: unknown = JSON.parse(text);
  assertSafeJson(value, { ...widestShape, ...shape });
  return value;
}
