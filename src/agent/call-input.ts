/**
 * The arguments of a tool call, made fit to be stored and sent again. Whatever a model writes there goes into
 * every later request of the conversation: what no request could hold is not kept, and the model is told why.
 */

import { cleanText } from '#channel-kit/clean-text.ts';
import { jsonProblem, measureJson, type ShapeLimits } from '#channel-kit/json-guard.ts';
import type { ToolCallData } from '#contracts/message.ts';

/** Longest arguments, in UTF-16 units of their JSON: more than any model writes in one answer. */
export const maxInputLength = 1024 * 1024;
const inputShape: ShapeLimits = { depth: 64, values: 20_000 };
/** Escaped in JSON a NUL or half a pair looks clean, and is neither to a database nor to a provider. */
const suspectEscape = /\\u(?:d[89a-f]|0000)/i;

/** Parses a call's arguments. Throws for invalid JSON; a call without arguments arrives as empty text. */
export function readInput(input: string): unknown {
  if (input.length > maxInputLength) throw new Error(tooLong);
  if (input.trim() === '') return {};
  const value: unknown = JSON.parse(input);
  const problem = jsonProblem(value, inputShape);
  if (problem !== undefined) throw new Error(problem);
  return suspectEscape.test(input) ? cleaned(value) : value;
}

/** Room for the arguments of an answer's calls: the loop reads all of them in one piece, again and again. */
export class InputRoom {
  #values = inputShape.values;

  /** Keeps arguments within the limits, cleaned; broken JSON is kept as text, for the model to see its mistake. */
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

/** A call whose arguments are not kept, for `reason`. */
export function refused(call: ToolCallData, reason: string): ToolCallData {
  return { ...call, input: '{}', refusal: `the arguments were not kept: ${reason}` };
}

const tooLong = `longer than ${maxInputLength} characters`;
const tooMany = `the calls of one answer hold more than ${inputShape.values} values`;

/** Within `inputShape`, so that it ends. */
function cleaned(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(cleaned);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [cleanText(key), cleaned(each)]));
}
