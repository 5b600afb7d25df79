const deepest = 64;

/** Throws for what no honest JSON of a platform's holds: prototype keys and bottomless nesting. */
export function refuseHostileShape(value: unknown, depth = 0): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > deepest) throw new Error(`nested deeper than ${deepest}`);
  for (const key of Object.keys(value)) {
    if (key === '__proto__' || key === 'constructor' || key === 'prototype')
      throw new Error(`holds the key ${key}`);
    refuseHostileShape((value as Record<string, unknown>)[key], depth + 1);
  }
}
