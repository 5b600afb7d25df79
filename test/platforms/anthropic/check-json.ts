import { Refusal } from './refusal.ts';

/** How deep the platform's own parser goes. */
const deepest = 200;

/**
 * Refuses what the platform's JSON parser refuses before it looks at any field. Not recursive, so any depth is safe.
 */
export function checkJson(body: unknown): void {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value: body, depth: 0 }];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const { value, depth } = at;
    if (typeof value === 'string') checkWhole(value);
    if (typeof value !== 'object' || value === null) continue;
    if (depth > deepest) throw invalid('recursion limit exceeded');
    for (const [key, inner] of Object.entries(value)) {
      checkWhole(key);
      open.push({ value: inner, depth: depth + 1 });
    }
  }
}

function checkWhole(text: string): void {
  if (!text.isWellFormed()) throw invalid('no low surrogate in string');
}

function invalid(why: string): Refusal {
  return new Refusal(`The request body is not valid JSON: ${why}`);
}
