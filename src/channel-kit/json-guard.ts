import { OversizedJson } from './read-json.ts';

/** How deep JSON from outside may be nested, and how many values it may contain. */
export type ShapeLimits = { readonly depth: number; readonly values: number };

/** Default limit: a platform's description of a large group fits. */
export const widestShape: ShapeLimits = { depth: 64, values: 1_000_000 };
/** Limit of one event, which is checked, copied and stored: 25,000 different keys take 20 ms. */
export const eventShape: ShapeLimits = { depth: 64, values: 25_000 };

/**
 * Finds what no honest JSON contains: prototype keys, bottomless nesting, endless lists, and values left unparsed
 * because of their length. Returns undefined if there is no problem.
 */
export function jsonProblem(value: unknown, limits: ShapeLimits = widestShape): string | undefined {
  return value instanceof OversizedJson ? value.message : measureJson(value, limits).problem;
}

/** Throws if the value has such a problem. */
export function assertSafeJson(value: unknown, limits = widestShape): void {
  const problem = jsonProblem(value, limits);
  if (problem !== undefined) throw new Error(problem);
}

/** Counts the values, including itself; stops counting at a problem. */
export function measureJson(
  value: unknown,
  limits: ShapeLimits,
): { readonly values: number; readonly problem: string | undefined } {
  const at = { depth: 0, left: limits.values };
  const problem = look(value, at, limits);
  return { values: limits.values - at.left, problem };
}

type Place = { depth: number; left: number };

function look(value: unknown, at: Place, limits: ShapeLimits): string | undefined {
  at.left -= 1;
  if (at.left < 0) return `contains more than ${limits.values} values`;
  if (typeof value !== 'object' || value === null) return undefined;
  if (at.depth >= limits.depth) return `nested deeper than ${limits.depth} levels`;
  at.depth += 1;
  const problem = Array.isArray(value) ? lookAtAll(value, at, limits) : lookInside(value, at, limits);
  at.depth -= 1;
  return problem;
}

function lookAtAll(values: readonly unknown[], at: Place, limits: ShapeLimits): string | undefined {
  for (const each of values) {
    const problem = look(each, at, limits);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function lookInside(value: object, at: Place, limits: ShapeLimits): string | undefined {
  for (const key of Object.keys(value)) {
    if (key === '__proto__' || key === 'constructor' || key === 'prototype') return `contains the key ${key}`;
    const problem = look((value as Record<string, unknown>)[key], at, limits);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
