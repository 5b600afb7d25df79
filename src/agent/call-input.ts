/**
 * The arguments of a tool call, made safe to store and to send again. They become part of every later request of the
 * conversation, so arguments that no request could contain are dropped and the model learns why.
 */

import { cleanText } from '#channel-kit/clean-text.ts';
import { jsonProblem, measureJson, type ShapeLimits } from '#channel-kit/json-guard.ts';
import type { ToolCallData } from '#contracts/message.ts';

/** Longest arguments, in UTF-16 units of their JSON: more than any model writes in one answer. */
export const maxInputLength = 1024 * 1024;
const inputShape: ShapeLimits = { depth: 64, values: 20_000 };
/** JSON escapes hide NULs and lone surrogates, which databases and providers reject once decoded. */
const suspectEscape = /\\u(?:d[89a-f]|0000)/i;

/**
 * Parses a call's arguments; empty text means no arguments. Throws for invalid JSON and for arguments over the limits.
 */
export function readInput(input: string): unknown {
  if (input.length > maxInputLength) throw new Error(tooLong);
  if (input.trim() === '') return {};
  const value: unknown = JSON.parse(input);
  const problem = jsonProblem(value, inputShape);
  if (problem !== undefined) throw new Error(problem);
  return suspectEscape.test(input) ? cleaned(value) : value;
}

/** The limit on all arguments of one answer together: the loop repeatedly reads them all in one go. */
export class InputRoom {
  #values = inputShape.values;

  /** Cleans arguments within the limits and drops others; broken JSON stays as text, so the model sees its mistake. */
  bound(call: ToolCallData): ToolCallData {
    if (call.input.length > maxInputLength) return refused(call, tooLong);
    if (this.#values < 0) return refused(call, tooMany);
    const input = cleanText(call.input);
    let value: unknown;
    try {
      value = input.trim() === '' ? {} : JSON.parse(input);
    } catch {
      return { ...call, input };
    }
    const { values, problem } = measureJson(value, { ...inputShape, values: this.#values });
    this.#values -= values;
    if (this.#values < 0) return refused(call, tooMany);
    if (problem !== undefined) return refused(call, problem);
    return { ...call, input: suspectEscape.test(input) ? JSON.stringify(cleaned(value)) : input };
  }
}

/** Returns the call without its arguments, refused for `reason`. */
export function refused(call: ToolCallData, reason: string): ToolCallData {
  return { ...call, input: '{}', refusal: `the arguments were not kept: ${reason}` };
}

const tooLong = `longer than ${maxInputLength} characters`;
const tooMany = `the calls of one answer contain more than ${inputShape.values} values`;

/** Only for values within `inputShape`, which bounds the recursion. */
function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(cleaned);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [cleanText(key), cleaned(each)]));
}
