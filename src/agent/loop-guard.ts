import type { ToolCallData } from '#contracts/message.ts';
import { readInput } from './call-input.ts';

/** A call without its id: only what it does. */
export type MadeCall = Pick<ToolCallData, 'name' | 'input'>;

/** Detects a model that keeps making the same call. */
export interface LoopGuard {
  /** Counts the call; false once it has been made more than `limit` times in a row. */
  admit(call: MadeCall): boolean;
}

/** Calls are identical if they pass the same arguments to the same tool, whatever the key order or spacing. */
export function createLoopGuard(limit: number): LoopGuard {
  let last: string | undefined;
  let count = 0;

  return {
    admit: (call) => {
      const key = `${call.name} ${canonical(call.input)}`;
      count = key === last ? count + 1 : 1;
      last = key;
      return count <= limit;
    },
  };
}

function canonical(input: string): string {
  try {
    return JSON.stringify(readInput(input), sortKeys);
  } catch {
    // Not JSON, so the text itself is compared.
    return input;
  }
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
